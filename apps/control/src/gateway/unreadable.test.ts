import { once } from "node:events"
import { PassThrough } from "node:stream"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { FrontWorld } from "./testing/front-world.ts"

let world: FrontWorld
beforeAll(async () => {
  world = await FrontWorld.open()
})
afterAll(() => world[Symbol.asyncDispose]())

describe("a connection on which no HTTP is spoken", () => {
  const unreadable = () => world.noted("request.unreadable")

  test("is told so, and that is written down", async () => {
    const before = (await unreadable()).length
    expect(await world.say("no HTTP at all\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /)
    expect(await world.say(`GET / HTTP/1.1\r\nHost: localhost:7777\r\nX: ${"x".repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    )
    expect((await unreadable()).length).toBe(before + 2)
  })

  test("because somebody hung up, or was told already, is nothing to write down", async () => {
    const before = (await unreadable()).length
    const reset = world.connect()
    const failed = new Promise((done) => world.server.once("clientError", done))
    await Promise.all([once(world.server, "connection"), once(reset, "connect")])
    reset.resetAndDestroy()
    expect(await failed).toMatchObject({ code: "ECONNRESET" })
    world.server.emit("clientError", new Error("again"), new PassThrough().end())
    expect((await unreadable()).length).toBe(before)
  })

  test("in time is heard once more before it is sent away; one that is silent is sent away, and so is nonsense", async () => {
    const late = Object.assign(new Error("late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
    /** How many more are written down when this goes wrong just before a request is heard. */
    const noted = async (error: Error): Promise<number> => {
      const before = (await unreadable()).length
      world.server.prependOnceListener("request", ({ socket }) => world.server.emit("clientError", error, socket))
      await world.ask("/", { headers: { connection: "keep-alive" } })
      await new Promise(setImmediate)
      return (await unreadable()).length - before
    }
    expect([await noted(late), await noted(new Error("nonsense"))]).toEqual([0, 1])
    const before = (await unreadable()).length
    const silent = new PassThrough()
    world.server.emit("clientError", late, silent)
    await once(silent, "close")
    expect((await unreadable()).length).toBe(before + 1)
  })
})
