import { once } from "node:events"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { connect as connectHttp2, createServer as createServer2 } from "node:http2"
import { newId } from "@warren/base/id.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { base, FrontWorld, portOf, session, socketTo, uid } from "./testing/front-world.ts"

let world: FrontWorld
beforeAll(async () => {
  world = await FrontWorld.open()
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(async () => {
  // Refusals of one minute are not all written down.
  await world.system.clock.advance(60_000)
  world.route = { socket: world.system.folder.at("bob.sock"), uid }
})

describe("what is for a gateway", () => {
  test("goes to the runner of whose session it is, with who came; the rest goes where it went", async () => {
    const { status, body } = await world.ask(`${base}/x?y=1`, { headers: { "x-warren-client": "6.6.6.6" } })
    expect([status, JSON.parse(body)]).toMatchObject([
      200,
      { url: `${base}/x?y=1`, headers: { "x-warren-client": "127.0.0.1", "x-warren-scheme": "http" } },
    ])
    expect((await world.ask("/")).body).toBe("the page")
    expect(await world.say(socketTo("/v1/x"))).toBe("the API")
    expect(await world.say("GET / HTTP/1.0\r\n\r\n")).toContain("the page")
    expect(await world.say(`GET ${base}/ HTTP/1.0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 /)
  })

  test("over HTTP/2, too, by the name that counts there", async () => {
    const second = createServer2()
    second.on("request", (_, response) => response.end("the page"))
    world.front.guard(second)
    second.listen(0, "127.0.0.1")
    await once(second, "listening")
    const client = connectHttp2(`http://127.0.0.1:${portOf(second)}`)
    const answer = async (path: string, authority: string) => {
      const sent = client.request({ ":path": path, ":authority": authority })
      const [{ ":status": status }] = (await once(sent, "response")) as [Record<string, unknown>]
      let body = ""
      for await (const piece of sent.setEncoding("utf8")) body += String(piece)
      return { status, body }
    }
    const own = `3000-${session.slice(4)}.warren.localhost:7777`
    expect(JSON.parse((await answer("/x", own)).body)).toMatchObject({ url: "/x", headers: { host: own } })
    expect(await answer("/", "localhost:7777")).toEqual({ status: 200, body: "the page" })
    expect((await answer(`${base}/x`, "evil.example")).status).toBe(403)
    client.close()
    second.close()
  })

  test("is refused where it can be for nobody, and that is written down", async () => {
    expect((await world.ask(`${base}/`, { host: "evil.example" })).status).toBe(403)
    expect((await world.ask("/s/ses_nonsense/t/3000/")).status).toBe(404)
    expect(await world.say(`GET ${base}/ HTTP/1.1\r\nHost: localhost:7777\r\nHost: localhost:7777\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    )
    expect((await world.ask(`/s/${newId("ses")}/t/3000/`)).status).toBe(401)
    const noted = (await world.noted("gateway.request")).slice(-4)
    expect(noted.map(({ subject, result }) => [subject === session, result])).toEqual([
      ...[
        [true, "forbidden"],
        [false, "not_found"],
        [true, "invalid"],
        [false, "unauthenticated"],
      ],
    ])
    expect(noted[1]).toMatchObject({ subject: "", address: "127.0.0.1" })
  })

  test("is refused in words that a browser keeps nowhere and takes for nothing else", async () => {
    const { status, headers, body } = await world.ask(`/s/${newId("ses")}/t/3000/`)
    expect([status, body]).toEqual([401, "this is not open to everybody (open it from Warren)\n"])
    expect(headers).toMatchObject({
      ...{ "content-security-policy": "default-src 'none'; frame-ancestors 'none'", "cache-control": "no-store" },
      ...{ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", connection: "close" },
    })
  })

  test("that the gateway refuses is written down, and its word to us is for us", async () => {
    const before = (await world.noted("gateway.request")).length
    const { status, headers } = await world.ask(`${base}/refuse`)
    expect([status, headers["x-warren-refused"]]).toEqual([403, undefined])
    while ((await world.noted("gateway.request")).length === before) await new Promise(setImmediate)
    expect((await world.noted("gateway.request")).at(-1)).toMatchObject({ subject: session, result: "forbidden" })
  })
})

describe("a runner", () => {
  test("whose socket is somebody else's, or no socket, is told nothing", async () => {
    const { folder } = world.system
    const before = (await world.noted("gateway.request")).length
    world.route = { ...world.route, uid: uid + 1 }
    expect((await world.ask(`${base}/`)).status).toBe(503)
    const at = async (make: (path: string) => void): Promise<number | undefined> => {
      const place = folder.at(newId("dir"))
      mkdirSync(place)
      make(`${place}/gateway.sock`)
      world.route = { socket: `${place}/world.bob.sock`, uid }
      return (await world.ask(`${base}/`)).status
    }
    expect(await at(() => undefined)).toBe(503)
    expect(await at((path) => writeFileSync(path, ""))).toBe(503)
    expect(await at((path) => symlinkSync(folder.at("gateway.sock"), path))).toBe(503)
    expect(await world.say(socketTo(`${base}/`))).toMatch(/^HTTP\/1\.1 503 /)
    // That nobody answers is nobody's refusal.
    expect((await world.noted("gateway.request")).length).toBe(before)
  })

  test("that breaks off is not taken for one that has ended, and is nobody's refusal", async () => {
    const before = (await world.noted("gateway.request")).length
    await expect(world.ask(`${base}/break`)).rejects.toThrow()
    expect(await world.say(socketTo(`${base}/break`))).toMatch(/^HTTP\/1\.1 503 /)
    expect((await world.noted("gateway.request")).length).toBe(before)
  })
})

test("what became of requests is counted", async () => {
  const counted = (status: number): number => {
    const line = new RegExp(`_count\\{call="gateway\\.request",status="${status}"\\} (\\d+)`)
    return Number(line.exec(world.system.metrics.text())?.[1] ?? 0)
  }
  const before = [200, 401].map(counted)
  await world.ask(`${base}/`)
  await world.ask(`/s/${newId("ses")}/t/3000/`)
  await eventually(() => [200, 401].every((status, at) => counted(status) === (before[at] ?? 0) + 1))
  expect(world.system.metrics.inFlight).toBe(0)
})
