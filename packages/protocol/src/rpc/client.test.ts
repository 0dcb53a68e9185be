import { getEventListeners, setMaxListeners } from "node:events"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { outcome } from "../testing/rpc-client.ts"
import { System, wire } from "../testing/rpc-system.ts"
import { remote } from "./remote.ts"
import { rpcLimits } from "./wire.ts"

describe("RpcClient with a server", () => {
  test("10,000 interleaved requests and 100 feeds with random cancels: each answer to its own caller, nothing left", async () => {
    await using system = await System.start()
    const { client } = system
    const handles = process.getActiveResourcesInfo().length
    let answered = 0
    let cancelled = 0
    const call = async (value: number): Promise<void> => {
      const controller = new AbortController()
      const reason = { cancelled: value }
      const options = value % 5 === 0 ? { signal: controller.signal } : {}
      const work = client.call("echo.say", { value, turns: value % 7 }, options)
      if (value % 5 === 0) {
        for (let turn = (value / 5) % 4; turn > 0; turn--) await new Promise(setImmediate)
        controller.abort(reason)
      }
      try {
        expect((await work).value).toBe(value)
        answered++
      } catch (thrown) {
        expect(thrown).toBe(reason)
        cancelled++
      }
    }
    const feed = async (base: number): Promise<void> => {
      const last = base + 200
      let seen = base
      const leaveAt = base % 3 === 0 ? base + (base % 150) : last
      for await (const { seq, item } of client.feed("count.up", { after: base, last, fill: "x".repeat(base % 90) })) {
        expect([seq, item.n]).toEqual([seen + 1, ++seen])
        expect(item.fill.length).toBe(base % 90)
        if (seen === leaveAt) break
        if (base % 4 === 0) await new Promise(setImmediate)
      }
      expect(seen).toBe(Math.max(leaveAt, base + (leaveAt === base ? 200 : 0)))
    }
    const calls = Array.from({ length: 10_000 }, (_, value) => call(value))
    const feeds = Array.from({ length: 100 }, (_, index) => feed(index * 1_000))
    await Promise.all([...calls, ...feeds])
    await system.quiet()
    expect(answered + cancelled).toBe(10_000)
    expect(answered).toBeGreaterThanOrEqual(8_000)
    expect(cancelled).toBeGreaterThan(500)
    expect([client.waiting, system.connection.inFlight]).toEqual([0, 0])
    await eventually(() => process.getActiveResourcesInfo().length <= handles)
    expect(system.logged).toEqual([])
  })

  test("many large answers at once reach a client that reads", async () => {
    await using system = await System.start()
    const sizes = Array.from({ length: 40 }, (_, index) => 1_000_000 + index)
    const answers = await Promise.all(sizes.map((chars) => system.client.call("text.make", { chars })))
    expect(answers.map(({ text }) => text.length)).toEqual(sizes)
    await system.quiet()
  })

  test("no more than the peer takes at once are sent; the rest wait their turn", async () => {
    await using system = await System.start()
    const { client, connection, answers } = system
    const controller = new AbortController()
    // Each call listens while it is under way, and all of them are.
    setMaxListeners(rpcLimits.inFlightMax + 1, controller.signal)
    const options = { signal: controller.signal, timeoutMs: 0 }
    const work = Array.from({ length: rpcLimits.inFlightMax + 1 }, () => outcome(client.call("work.wait", {}, options)))
    await eventually(() => answers.events.length === rpcLimits.inFlightMax)
    const next = client.call("echo.say", { value: "next" }, { timeoutMs: 0 })
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect([connection.inFlight, client.waiting]).toEqual([rpcLimits.inFlightMax, rpcLimits.inFlightMax + 2])
    controller.abort("enough")
    expect(new Set(await Promise.all(work))).toEqual(new Set(["enough"]))
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    expect((await next).value).toBe("next")
    expect(answers.events.filter((event) => event === "started").length).toBe(rpcLimits.inFlightMax)
    await system.quiet()
  })

  test("closing rejects what waits, at once, and stops it at the other end", async () => {
    await using system = await System.start()
    const work = outcome(system.client.call("work.wait", {}, { timeoutMs: 0 }))
    const feed = system.client.feed("count.up", { last: 1_000_000_000 })
    await feed.next()
    await eventually(() => system.answers.events.includes("started"))
    await system.client[Symbol.asyncDispose]()
    await system.client[Symbol.asyncDispose]()
    expect(await work).toMatchObject({ code: "cancelled" })
    await expect(system.client.call("echo.say", { value: 1 })).rejects.toMatchObject({ code: "cancelled" })
    await expect(system.client.feed("count.up", { last: 1 }).next()).rejects.toMatchObject({ code: "cancelled" })
    expect([system.client.isOpen, system.client.waiting]).toEqual([false, 0])
    await eventually(() => system.connection.inFlight === 0)
    expect(system.answers.events.toSorted()).toEqual(["feed over", "started", "stopped"])
    await feed.return()
  })

  test("remote has the shape of the handlers at the other end", async () => {
    await using system = await System.start()
    const plane = remote(wire, {
      client: () => Promise.resolve(system.client),
      connect: () => Promise.reject(new Error("no stream is opened here")),
    })
    const context = { signal: new AbortController().signal, caller: { name: "x" } }
    expect(await plane["echo.say"]({ value: 4, turns: 0 }, context)).toEqual({ value: 4 })
    const items = []
    for await (const item of plane["count.up"]({ after: 0, last: 2, fill: "", times: 1, thenWaits: false }, context))
      items.push(item.seq)
    expect(items).toEqual([1, 2])
  })
})
