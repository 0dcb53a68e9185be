import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import { streamTags } from "@warren/base/frame.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { z } from "zod"
import { collectedBytesMax } from "../collected.ts"
import { contract, type Handlers } from "../contract.ts"
import { Chunk, type Conversation } from "../conversation.ts"
import { RpcClient } from "./client.ts"
import { RpcConnection } from "./server.ts"
import { rpcLimits } from "./wire.ts"

const stream = { since: 1, up: z.object({}), down: z.object({ ev: z.literal("exit"), code: z.int() }) } as const
const wire = contract({
  "tool.run": {
    ...stream,
    doc: "Says texts and ends.",
    in: z.object({ text: z.string().default(""), times: z.int().default(1), end: z.enum(["exit", "lie", "never"]) }),
    body: "result",
  },
  "tool.talk": { ...stream, doc: "Only for those who talk.", in: z.object({}) },
  "tool.ask": { since: 1, doc: "A call.", in: z.object({}), out: z.object({}) },
})

let scope: Scope
let client: RpcClient<typeof wire>
let disposed = 0

beforeEach(async () => {
  scope = new Scope()
  disposed = 0
  const handlers: Handlers<typeof wire> = {
    "tool.run": ({ text, times, end }) => Promise.resolve(talk(text.repeat(times), end)),
    "tool.talk": () => Promise.resolve(talk("", "exit")),
    "tool.ask": () => Promise.resolve({}),
  }
  const pair = await SocketPair.make()
  const log = createLog(() => undefined)
  scope.use(pair)
  scope.use(new RpcConnection(pair.right, { name: "me" }, { contract: wire, handlers, log, build: "test" }))
  client = scope.use(new RpcClient(pair.left, wire))
})
afterEach(() => scope[Symbol.asyncDispose]())

function talk(text: string, end: string): Conversation<object, { ev: "exit"; code: number }> {
  const said = [streamTags.stdout, streamTags.stderr].map((tag) => new Chunk(tag, Buffer.from(text)))
  const items = [...said, { ev: "exit" as const, code: end === "lie" ? ("x" as unknown as number) : 7 }]
  return {
    next: () => (end === "never" ? new Promise(() => undefined) : Promise.resolve(items.shift())),
    send: () => undefined,
    write: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => {
      disposed++
      return Promise.resolve()
    },
  }
}

describe("a stream that is asked for like a call", () => {
  test("is answered with its last message and all its output", async () => {
    const { result } = await client.collect("tool.run", { text: "a", end: "exit" })
    expect(result).toEqual({ code: 7, stdout: "a", stderr: "a", truncated: false })
    expect(disposed).toBe(1)
  })

  // The worst that JSON makes of a character, and characters that are two.
  const texts = ["\u0001", "\u{1F407}", "plain "]
  const lengths = [-1, 0, 1, 3 * rpcLimits.pieceChars + 1].map((more) => rpcLimits.pieceChars + more)
  test.each(texts.flatMap((text) => lengths.map((length) => ({ text, times: Math.floor(length / text.length) }))))(
    "brings all of its texts: $text, $times times",
    async ({ text, times }) => {
      const { result } = await client.collect("tool.run", { text, times, end: "exit" })
      const whole = text.repeat(times)
      expect([result["stdout"] === whole, result["stderr"] === whole, result["truncated"]]).toEqual([true, true, false])
    },
  )

  test("keeps as much as one answer holds, and says that it was more", async () => {
    const fits = await client.collect("tool.run", { text: "x", times: collectedBytesMax, end: "exit" })
    expect(fits.result["truncated"]).toBe(false)
    const { result } = await client.collect("tool.run", { text: "x", times: collectedBytesMax + 1, end: "exit" })
    expect([String(result["stdout"]).length, result["truncated"]]).toEqual([collectedBytesMax, true])
  })

  test("does not hold up calls, and ends when it is not waited for any more", async () => {
    const stop = new AbortController()
    const waiting = client.collect("tool.run", { end: "never" }, { signal: stop.signal })
    expect(await client.call("tool.ask", {})).toEqual({})
    stop.abort(new Error("enough"))
    await expect(waiting).rejects.toThrow("enough")
    await eventually(() => disposed === 1)
  })

  test("ends with its connection", async () => {
    const waiting = client.collect("tool.run", { end: "never" })
    await client.call("tool.ask", {})
    await client[Symbol.asyncDispose]()
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" })
    await eventually(() => disposed === 1)
  })

  test("fails as a bug when what it says is not what it should", async () => {
    await expect(client.collect("tool.run", { end: "lie" })).rejects.toMatchObject({ code: "internal" })
    expect(disposed).toBe(1)
  })

  test("is refused when it is one that has to be talked with", async () => {
    await expect(client.collect("tool.talk", {})).rejects.toMatchObject({ code: "unsupported" })
  })
})
