import { Duplex, duplexPair } from "node:stream"
import { Execution } from "@warren/drivers/init/exec.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { ProcessMemory } from "@warren/protocol/hub/link-memory.ts"
import { HubDown, HubUp } from "@warren/protocol/hub/messages.ts"
import { ReliableLink, type Wire } from "@warren/protocol/hub/reliable-link.ts"
import { launcher } from "@warren/protocol/launcher/launcher.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { Answers, wire } from "@warren/protocol/testing/rpc-system.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { Init } from "../../init/test/client.ts"
import { Wire as InitWire } from "../../init/test/client.ts"
import { Chance } from "../api/chance.ts"
import { burstOf, textOf, type Message } from "./frames/flood.ts"
import { record } from "./results.ts"

/** WARREN_FRAMES: how many for each channel; a million is a night's. WARREN_SEED: those of another run. */
const framesEach = Number(process.env["WARREN_FRAMES"] ?? 5_000)
const seed = Number(process.env["WARREN_SEED"] ?? Math.floor(Math.random() * 2 ** 31))
const grownBytesMax = 96 * 1024 * 1024

const hello = { hello: { version: 1, name: "flood" } }
const asked: readonly Message[] = [
  hello,
  { id: 1, call: "echo.say", in: { value: { a: [1, "x"] }, turns: 2 }, trace: "00-1-2-03" },
  { id: 2, call: "text.make", in: { chars: 100 } },
  { id: 3, call: "work.wait", in: {} },
  { id: 4, call: "fault.throw", in: { kind: "bug" } },
  { id: 5, call: "count.up", in: { last: 20, times: 2, fill: "ab" } },
  { id: 6, open: "pipe.open", in: { mode: "echo", bytes: 1_000 } },
  { id: 3, cancel: true },
  { op: "anything" },
]
const answered: readonly Message[] = [
  { welcome: { version: 1, build: "flood", inFlightMax: 8 } },
  { id: 1, out: { value: 5 } },
  { id: 2, out: { text: "xx" } },
  { id: 3, seq: 1, item: { n: 1, fill: "" } },
  { id: 3, seq: 2, item: { n: 2, fill: "" } },
  { id: 3, end: true },
  { id: 1, fault: { code: "conflict", message: "no" } },
  { id: 0, fault: { code: "invalid", message: "what?" } },
]
const initSaid: readonly Message[] = [
  { ev: "started", pid: 7 },
  { ev: "exit", code: 0, signal: null, reason: "exited", durationMs: 1, truncated: false },
  { ev: "warn", message: "x" },
  { ev: "fault", code: "not_found", message: "x", errno: 2 },
  { ev: "ok" },
  { ev: "end" },
]
const up: readonly Message[] = [
  { type: "message.create", turnId: "t", messageId: "m" },
  { type: "message.part.text-delta", turnId: "t", delta: "hello" },
  { type: "message.part.tool-update", turnId: "t", callId: "c", toolName: "bash", status: "running", args: { a: 1 } },
  { type: "message.finalize", turnId: "t", messageId: "m", reason: "end_turn" },
  { type: "agentStatus", status: "idle" },
  { type: "tool-call", requestId: "r", tool: "status", input: {} },
]
const down: readonly Message[] = [
  { type: "prompt", messageId: "m", channel: "web:default", content: "do it" },
  { type: "answer", questionId: "q", answer: "yes" },
  { type: "abort", messageId: "m" },
  { type: "revert", messageId: "m", channel: "web:default" },
  { type: "stop" },
]
const signs: readonly Message[] = [
  { type: "resume", link: "lnk", ack: 0 },
  { type: "ping", ack: 1, truth: { turns: [], agent: "ready" } },
  { type: "ack", ack: 2 },
  { type: "refused", ack: 1, of: 1, code: "invalid", message: "no" },
]
const initAsked: readonly Message[] = [
  { op: "hello" },
  { op: "spawn", argv: ["true"], timeoutMs: 50, env: { A: "b" }, cwd: "/" },
  { op: "spawn", argv: ["cat"], timeoutMs: 50, pty: { cols: 80, rows: 24 } },
  { op: "spawn", argv: ["sleep", "0.01"], detached: true, replayBytes: 100, timeoutMs: 50 },
  { op: "attach", pid: 7 },
  { op: "shell.open" },
  { op: "file.read", path: "/etc/hostname", offset: 0 },
  { op: "file.list", path: "/tmp", depth: 1 },
  { op: "file.stat", path: "/etc" },
  { op: "connect", port: 1 },
  { op: "ps" },
  { op: "usage" },
  { op: "eof" },
]

const bugs: unknown[] = []
const noteBug = (thrown: unknown): void => void bugs.push(thrown)
beforeAll(() => {
  process.on("unhandledRejection", noteBug)
  process.on("uncaughtException", noteBug)
})
afterAll(() => {
  process.off("unhandledRejection", noteBug)
  process.off("uncaughtException", noteBug)
})

/** Connections, one after the other, until so many frames were sent. */
async function flood(
  name: string,
  connection: (chance: Chance) => Promise<number>,
  frames = framesEach,
): Promise<void> {
  const chance = new Chance(seed)
  const before = process.memoryUsage().rss
  let [sent, connections] = [0, 0]
  for (; sent < frames; connections++) sent += await connection(chance)
  const grownMb = Math.round((process.memoryUsage().rss - before) / 2 ** 20)
  record(`frames-${name}`, { cases: sent, connections, seed, grownMb, bad: bugs.length })
  expect(bugs.splice(0).slice(0, 3), `seed ${seed}`).toEqual([])
  expect(grownMb * 2 ** 20, `seed ${seed}`).toBeLessThan(grownBytesMax)
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const log = createLog(() => undefined)

/** What is not a fault of ours is a bug. */
function faultsOnly(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results)
    if (result.status === "rejected" && !(result.reason instanceof Fault)) bugs.push(result.reason)
}

const serve = (stream: Duplex): RpcConnection<typeof wire> =>
  new RpcConnection(stream, { name: "flood" }, { contract: wire, handlers: new Answers().handlers(), log, build: "t" })

test("a caller can say what it wants to a runner", { timeout: 3_600_000 }, () =>
  flood("caller-to-runner", async (chance) => {
    const [ours, theirs] = duplexPair()
    const connection = serve(ours)
    theirs.on("error", () => undefined).resume()
    const { bytes, frames } = burstOf([hello], asked, chance)
    theirs.write(bytes)
    for (let turns = chance.below(4); turns >= 0; turns--) await turn()
    theirs.destroy()
    await connection[Symbol.asyncDispose]()
    if (connection.inFlight !== 0) bugs.push(new Error(`${connection.inFlight} are in flight`))
    return frames
  }),
)

test(
  "a caller can say what it wants to a launcher, and no verb of it is reached with nonsense",
  { timeout: 3_600_000 },
  () =>
    flood("control-to-launcher", async (chance) => {
      const [ours, theirs] = duplexPair()
      const handlers = Object.fromEntries(
        Object.entries(launcher).map(([name, entry]) => [
          name,
          (input: unknown) => {
            if (!entry.in.safeParse(input).success)
              bugs.push(new Error(`${name} was reached with ${JSON.stringify(input)}`))
            return Promise.reject(new Fault("not_found", "there is no such user"))
          },
        ]),
      )
      const connection = new RpcConnection(
        ours,
        { name: "" },
        { contract: launcher, handlers: handlers as never, log, build: "t" },
      )
      theirs.on("error", () => undefined).resume()
      const verbs = Object.keys(launcher).map((call, index) => ({
        id: index + 1,
        call,
        in: { user: "alice", name: "alice" },
      }))
      const { bytes, frames } = burstOf([hello], [...verbs, ...asked], chance)
      theirs.write(bytes)
      for (let turns = chance.below(3); turns >= 0; turns--) await turn()
      theirs.destroy()
      await connection[Symbol.asyncDispose]()
      return frames
    }),
)

test(
  "a runner can answer what it wants: every call ends, with a fault or with what was promised",
  { timeout: 3_600_000 },
  () =>
    flood("runner-to-caller", async (chance) => {
      const [ours, theirs] = duplexPair()
      const client = new RpcClient(ours, wire, "flood")
      theirs.on("error", () => undefined).resume()
      const calls = Promise.allSettled([
        client.call("echo.say", { value: 1 }),
        client.call("text.make", { chars: 1 }).then(({ text }) => text.length),
        (async () => {
          for await (const { item } of client.feed("count.up", { last: 5 }))
            if (typeof item.n !== "number") throw new Error("n")
        })(),
      ])
      const [welcome] = answered as [Message]
      const { bytes, frames } = burstOf([welcome], answered, chance)
      theirs.write(bytes)
      for (let turns = chance.below(4); turns >= 0; turns--) await turn()
      theirs.destroy()
      await client[Symbol.asyncDispose]()
      faultsOnly(await calls)
      return frames
    }),
)

test(
  "a hostile init can answer what it wants: the command ends, with a fault or with how it ended",
  { timeout: 3_600_000 },
  () =>
    flood("init-to-runner", async (chance) => {
      const [ours, theirs] = duplexPair()
      theirs.on("error", () => undefined).resume()
      const sandbox = {
        connect: () => Promise.resolve(ours),
        oomKills: () => 0,
      }
      const running = Promise.allSettled([run(sandbox as unknown as Sandbox)])
      const [started] = initSaid as [Message]
      const { bytes, frames } = burstOf([started], initSaid, chance)
      theirs.write(bytes)
      for (let turns = chance.below(3); turns >= 0; turns--) await turn()
      theirs.end()
      faultsOnly(await running)
      return frames
    }),
)

async function run(sandbox: Sandbox): Promise<void> {
  await using execution = await Execution.start(sandbox, { argv: ["true"] })
  for await (const { bytes } of execution.output()) if (!Buffer.isBuffer(bytes)) throw new Error("no bytes")
}

test.each([
  ["supervisor-to-hub", HubUp, up],
  ["hub-to-supervisor", HubDown, down],
] as const)(
  "%s: what is taken is in its vocabulary, once and in order",
  { timeout: 3_600_000 },
  (name, vocabulary, proper) => {
    const taken: number[] = []
    const memory = new ProcessMemory<HubUp>()
    const link = new ReliableLink<HubUp, HubUp>({
      link: "lnk",
      memory,
      vocabulary,
      later: (work) => work(),
      deliver: (message, note) => {
        if (!vocabulary.safeParse(message).success) bugs.push(new Error("that is no word of it"))
        note()
        if (memory.received !== (taken.at(-1) ?? 0) + 1)
          bugs.push(new Error(`${memory.received} after ${taken.at(-1)}`))
        taken[0] = memory.received
      },
    })
    return flood(name, async (chance) => {
      let isOpen = true
      const connection: Wire = { send: () => undefined, close: () => void (isOpen = false) }
      link.attach(connection)
      link.receive(connection, JSON.stringify({ type: "resume", link: "lnk", ack: 0 }))
      let sent = 1
      for (; isOpen && sent < 200; sent++) {
        // What was refused was taken, too.
        taken[0] = memory.received
        const numbered = proper.map((message) => ({ ...message, seq: memory.received + 1, ack: 0 }))
        link.receive(connection, textOf(chance.is(0.9) ? numbered : signs, chance))
      }
      link.detach(connection)
      await turn()
      return sent
    })
  },
)

test("whoever reaches init can say what it wants to it", { timeout: 3_600_000 }, async () => {
  await using init = await Init.start({ variant: "sanitize" })
  // A process and a connection each: a tenth of what channels in memory are given.
  await flood(
    "runner-to-init",
    async (chance) => {
      using one = new InitWire(init.socket)
      const { bytes, frames } = burstOf([], initAsked, chance)
      one.raw(bytes)
      if (chance.is(0.5)) await Promise.race([one.next(), new Promise((resolve) => setTimeout(resolve, 20))])
      return frames
    },
    framesEach / 10,
  )
  await init.settle(
    () => init.call({ op: "hello" }),
    (result) => result.last["ev"] === "ok",
  )
})
