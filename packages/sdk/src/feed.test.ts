import { Fault } from "@warren/base/fault.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { eventsOf, type ServerEvent } from "./events.ts"
import { answer, hangUp, say, ScriptedServer } from "./testing/scripted-server.ts"
import { Warren } from "./warren.ts"

const item = (seq: number): string => `id: ${seq}\nevent: item\ndata: {"id":"ses_${seq}","event":"changed"}\n\n`
const end = "event: end\ndata: {}\n\n"

describe("events", () => {
  test("are the same however their bytes are cut", async () => {
    const text = fc.string({ unit: "binary" }).map((value) => JSON.stringify({ value }))
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 8 }), fc.array(fc.nat(40)), async (values, cuts) => {
        const wire =
          values.map((data, seq) => `: still here\n\nid: ${seq}\nevent: item\ndata: ${data}\n\n`).join("") + end
        const told: ServerEvent[] = []
        for await (const event of eventsOf(new Response(inPieces(Buffer.from(wire), cuts)))) told.push(event)
        expect(told).toEqual(values.map((data, seq) => ({ event: "item", id: String(seq), data })))
      }),
      { numRuns: 50 },
    )
  })

  test("that break off are no end", async () => {
    const events = eventsOf(new Response(item(1)))
    expect((await events.next()).value).toMatchObject({ id: "1" })
    await expect(events.next()).rejects.toMatchObject({ code: "unavailable" })
  })
})

function inPieces(bytes: Buffer, cuts: readonly number[]): ReadableStream<Uint8Array> {
  let at = 0
  let turn = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      const size = Math.max(1, cuts[turn++ % Math.max(1, cuts.length)] ?? bytes.length)
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + size)))
      at += size
    },
  })
}

describe("a feed", () => {
  test("goes on after the last number it saw, whatever becomes of its connections", async () => {
    await using server = await ScriptedServer.start(
      say(item(1) + item(2), "cut"),
      hangUp,
      say(item(3).slice(0, 12), "end"),
      say(item(3) + end),
    )
    const seen: number[] = []
    for await (const { seq } of new Warren({ url: server.url, token: "t" }).sessions.events()) seen.push(seq)
    expect(seen).toEqual([1, 2, 3])
    expect(server.heard.map(({ path }) => path.split("?")[1])).toEqual(["after=0", "after=2", "after=2", "after=2"])
  })

  test("that missed something says resync, and does not go on by itself", async () => {
    const fault = JSON.stringify({ code: "resync", message: "items 1 to 5 are no longer kept", hint: "after 9" })
    await using server = await ScriptedServer.start(say(`event: fault\ndata: ${fault}\n\n`))
    const events = new Warren({ url: server.url, token: "t" }).sessions.events({ after: 1 })
    await expect(events.next()).rejects.toMatchObject({ code: "resync", hint: "after 9" })
    expect(server.heard).toHaveLength(1)
  })

  test("of somebody who may not is over", async () => {
    const error = { code: "unauthenticated", message: "a valid token is missing" }
    await using server = await ScriptedServer.start(answer(401, { error }))
    const thrown: unknown = await new Warren({ url: server.url, token: "t" }).sessions
      .events()
      .next()
      .catch((reason: unknown) => reason)
    expect(thrown).toBeInstanceOf(Fault)
    expect(thrown).toMatchObject({ code: "unauthenticated" })
  })

  test("ends with the reader's signal, with its reason", async () => {
    await using server = await ScriptedServer.start(say(item(1), "stay"))
    const stop = new AbortController()
    const events = new Warren({ url: server.url, token: "t" }).sessions.events({ signal: stop.signal })
    expect((await events.next()).value).toMatchObject({ seq: 1 })
    const next = events.next()
    const reason = new Error("enough")
    stop.abort(reason)
    await expect(next).rejects.toBe(reason)
  })
})

describe("the output of a process", () => {
  const out = (text: string): string => `event: stdout\ndata: {"base64":"${btoa(text)}"}\n\n`
  const attached = (from: number, dropped = 0): string =>
    `event: attached\ndata: {"from":${from},"dropped":${dropped},"isRunning":true}\n\n`
  const exit = `event: exit\ndata: {"exitCode":0,"signal":null,"reason":"exit","durationMs":1,"truncated":false}\n\n`

  test("goes on at the byte it had, and says what was lost", async () => {
    await using server = await ScriptedServer.start(
      answer(200, { id: "s" }),
      say(attached(0) + out("one") + out("two"), "cut"),
      say(attached(8, 2) + out("four") + exit + end),
    )
    const session = await new Warren({ url: server.url, token: "t" }).sessions.get("s")
    const output = session.process(7).output()
    const told: unknown[] = []
    let next = await output.next()
    for (; !next.done; next = await output.next()) told.push("text" in next.value ? next.value.text : next.value)
    expect(told).toEqual(["one", "two", { dropped: 2 }, "four"])
    expect(next.value).toMatchObject({ exitCode: 0, reason: "exit" })
    expect(server.heard[2]?.path).toContain("after=6&")
  })
})
