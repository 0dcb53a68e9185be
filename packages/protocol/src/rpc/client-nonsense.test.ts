import { Fault } from "@warren/base/fault.ts"
import { encodeJson } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { outcome, welcome, withPeer } from "../testing/rpc-client.ts"
import { wire } from "../testing/rpc-system.ts"
import { spoiledFrame } from "../testing/spoiled-frame.ts"
import { RpcClient } from "./client.ts"

describe("RpcClient with a server that stops", () => {
  test.each([
    ["a fault without a message", { fault: { code: "conflict" } }],
    ["a fault that is nothing", { fault: null }],
    ["a fault with a message over the limit", { fault: { code: "conflict", message: "x".repeat(20_000) } }],
    ["an item for a call", { seq: 1, item: {} }],
    ["an end for a call", { end: true }],
    ["something unknown", { progress: 1 }],
    ["nothing", {}],
    ["an answer of the wrong shape", { out: 5 }],
  ])("a call that is answered with %s ends with a typed fault", (_, answer) =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }, { timeoutMs: 0 }))
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, ...answer })
      expect(await work).toBeInstanceOf(Fault)
    }),
  )

  test.each([
    ["a fault without a message", { fault: { code: "conflict" } }],
    ["an answer for a feed", { out: {} }],
    ["something unknown", { progress: 1 }],
    ["an item without a number", { item: {} }],
    ["an item of the wrong shape", { seq: 1, item: 5 }],
  ])("a feed that gets %s ends with a typed fault, not as if it were over", (_, answer) =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.feed("count.up", { last: 5 }).next())
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, ...answer })
      expect(await work).toBeInstanceOf(Fault)
    }),
  )

  test("a fault with a code of a newer peer reads as `internal`", () =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }))
      await eventually(() => peer.messages.length === 2)
      peer.send({ id: 1, fault: { code: "teapot", message: "short", extra: true } })
      expect(await work).toMatchObject({ code: "internal", message: "short" })
    }))

  test("whatever a peer sends, every caller hears back, and nothing else breaks", async () => {
    const id = fc.oneof(fc.integer({ min: -1, max: 4 }), fc.constantFrom("1", null, 1.5, 1e300))
    const junk = fc.jsonValue({ maxDepth: 2 })
    const message = fc.oneof(
      fc.record({ id, out: junk }, { requiredKeys: [] }),
      fc.record({ id, fault: fc.oneof(junk, fc.record({ code: fc.constantFrom("limit", "x"), message: junk })) }),
      fc.record({
        id,
        seq: fc.oneof(fc.integer(), junk),
        item: fc.oneof(junk, fc.record({ n: fc.integer(), fill: fc.string() })),
      }),
      fc.record({ id, end: fc.oneof(fc.constant(true), junk) }),
      fc.constant(JSON.parse('{"__proto__":{"id":1,"out":{"value":1}},"constructor":1}') as object),
      fc.constant(welcome),
    )
    const frame = spoiledFrame(message, 40)
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(frame, { maxLength: 12 }), async (isGreeted, frames) => {
        await using pair = await SocketPair.make()
        pair.right.on("error", () => undefined).resume()
        await using client = new RpcClient(pair.left, wire)
        const drain = async (): Promise<void> => {
          for await (const _ of client.feed("count.up", { last: 3 })) continue
        }
        const work = Promise.all(
          [client.call("echo.say", { value: 1 }), drain(), client.call("text.make", { chars: 1 })].map(outcome),
        )
        if (isGreeted) pair.right.write(encodeJson(welcome))
        for (const bytes of frames) pair.right.write(bytes)
        pair.right.end()
        for (const result of await work) if (result !== "answered") expect(result).toBeInstanceOf(Fault)
        // Everybody may have been answered before the end is seen.
        await eventually(() => !client.isOpen)
        expect(client.waiting).toBe(0)
      }),
      { numRuns: 150 },
    )
    expect(({} as Record<string, unknown>)["out"]).toBeUndefined()
  })
})
