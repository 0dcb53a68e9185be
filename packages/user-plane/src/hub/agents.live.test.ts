import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import type { Item } from "./turn-book.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Asking } from "../conformance.ts"
import { dataCalls } from "@warren/protocol/user-plane.ts"
import { openUserPlane, type LocalUserPlane } from "../user-plane.ts"

const dist = resolve(import.meta.dirname, "../../../../dist")
const root = realpathSync(mkdtempSync(join(tmpdir(), "wa-")))
let folder: TempFolder
let supervisorProgram: string
let scope = new Scope()
let plane: LocalUserPlane
const ask = new Asking(dataCalls, () => plane.handlers)

async function openPlane(): Promise<void> {
  const log = createLog(() => undefined)
  const program = (name: string): string => join(dist, name)
  const programs = { init: program("warren-init"), launch: program("warren-launch"), libraries: program("crun-lib") }
  const driver = scope.use(
    await openOciDriver({ root: join(root, "oci"), programs, log, volume: { firstBytes: 2 ** 30 } }),
  )
  plane = scope.use(
    await openUserPlane({
      ...{ root, drivers: [driver], image: "host", sqlProgram: program("sql.js"), recipes: program("images") },
      supervisorProgram,
      upstreams: { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com" },
      ...{ env: {}, sessionsMax: 100, poolBytes: 0, poolLeast: 0, clock: systemClock, log },
    }),
  )
}

/** Another runner takes over. */
async function reopen(): Promise<void> {
  await scope.close()
  scope = new Scope()
  await openPlane()
}

beforeAll(async () => {
  folder = await TempFolder.make()
  supervisorProgram = await bundleProgram(new URL("../../../../apps/supervisor/src/main.ts", import.meta.url), folder)
  await openPlane()
})
afterAll(async () => {
  for (const { id } of (await ask.call("session.list", { limit: 200 })).items) await ask.call("session.delete", { id })
  await scope.close()
  rmSync(root, { recursive: true, force: true })
  await folder[Symbol.asyncDispose]()
})

const written = (...steps: object[]): string => `[[script:${JSON.stringify({ steps })}]]`
const scripted = { adapter: "scripted" } as const

async function told(session: string, fits: (item: Item) => boolean): Promise<Item[]> {
  const seen: Item[] = []
  for await (const { item } of ask.feed("session.feed", { id: session })) {
    const one = item as unknown as Item
    seen.push(one)
    if (fits(one)) return seen
  }
  return seen
}
const isDone =
  (messageId: string) =>
  (item: Item): boolean =>
    item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done"
const isText = ({ type }: Item): boolean => type === "message.part.text-delta"

async function answerTo(messageId: string, chatId: string) {
  const { items } = await ask.call("chat.messages", { id: chatId, limit: 50 })
  const answers = items.filter((message) => message.promptId === messageId)
  expect(answers).toHaveLength(1)
  const [answer] = answers
  const text = answer?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? ""
  return { ...answer, text }
}

describe("an agent in the sandbox of its session", () => {
  test("answers: pieces of text, a real tool, one finalize, and it is idle again", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    expect(await ask.call("agent.start", { session, spec: scripted })).toMatchObject({
      isConnected: true,
      adapter: "scripted",
    })
    const { messageId, chatId } = await ask.call("agent.prompt", { session, text: "Hello, who are you?" })
    const items = await told(session, isDone(messageId))
    expect(items.filter(isText).length).toBeGreaterThan(3)
    expect(items.filter(({ type }) => type === "message.finalize")).toHaveLength(1)
    const answer = await answerTo(messageId, chatId)
    expect(answer).toMatchObject({ reason: "end_turn", text: expect.stringContaining("You said: Hello, who are you?") })
    expect(answer.parts).toContainEqual(
      expect.objectContaining({
        type: "tool",
        tool: "bash",
        status: "completed",
        result: expect.stringContaining("user in /home/user"),
      }),
    )
    await told(session, (item) => item.type === "agent.status" && item.status === "idle")
    await ask.call("session.delete", { id: session })
    await expect(ask.call("agent.get", { session })).rejects.toMatchObject({ code: "not_found" })
  })

  test("a reader that stops reading is told so with `resync`; nobody else notices", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    await ask.call("agent.start", { session, spec: scripted })
    // Each is told when it begins and when it is done: more than a feed keeps.
    const calls = 2_000
    const steps = Array.from({ length: calls }, (_, n) => ({ tool: "look", args: { n } }))
    const stalled = ask.feed("session.feed", { id: session })[Symbol.asyncIterator]()
    const { messageId } = await ask.call("agent.prompt", { session, text: written(...steps) })
    await stalled.next()
    const done = (await told(session, isDone(messageId))).filter(
      (item) =>
        item.type === "message.part.tool-update" && item.part.type === "tool" && item.part.status === "completed",
    )
    expect(done).toHaveLength(calls)
    const rest = async (): Promise<void> => {
      while (!(await stalled.next()).done);
    }
    await expect(rest()).rejects.toMatchObject({ code: "resync", hint: expect.stringContaining("after") })
    await ask.call("session.delete", { id: session })
  })

  test("is any program, with a workspace to work in", async () => {
    const { id: session } = await ask.call("session.create", { workspace: "agent-work" })
    const args = ["-c", 'echo "$1" > note; pwd; cat note', "sh"]
    await ask.call("agent.start", { session, spec: { adapter: "command", cmd: "sh", args } })
    const { messageId, chatId } = await ask.call("agent.prompt", { session, text: "remember this" })
    await told(session, isDone(messageId))
    expect(await answerTo(messageId, chatId)).toMatchObject({ reason: "end_turn", text: "/workspace\nremember this\n" })
    expect(await ask.read(session, "/workspace/note")).toBe("remember this\n")
    await ask.call("session.delete", { id: session })
  })

  test("survives its runner and a pause; killed, its turn ends with the cause and the next one works", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    await ask.call("agent.start", { session, spec: scripted })
    const slow = written({ text: "0123456789".repeat(10), pieces: 100, delayMs: 10 })
    const first = await ask.call("agent.prompt", { session, text: slow })
    await told(session, isText)
    await ask.call("session.pause", { id: session })
    await ask.call("session.resume", { id: session })
    await reopen()
    await told(session, isDone(first.messageId))
    expect(await answerTo(first.messageId, first.chatId)).toMatchObject({
      reason: "end_turn",
      text: "0123456789".repeat(10),
    })

    const second = await ask.call("agent.prompt", { session, text: written({ text: "begun" }, { hang: true }) })
    await told(session, (item) => isText(item) && "delta" in item && item.delta === "begun")
    const { processes } = await ask.call("process.list", { session })
    const supervisor = processes.find(({ argv, isRunning }) => isRunning && argv[0] === "node")
    await ask.call("process.kill", { session, pid: supervisor?.pid ?? 0, signal: "SIGKILL" })
    await told(session, isDone(second.messageId))
    expect(await answerTo(second.messageId, second.chatId)).toMatchObject({
      reason: "lost",
      cause: "orphaned",
      text: "begun",
    })

    const third = await ask.call("agent.prompt", { session, text: written({ text: "again" }) })
    await told(session, isDone(third.messageId))
    expect(await answerTo(third.messageId, third.chatId)).toMatchObject({ reason: "end_turn", text: "again" })
    await ask.call("session.delete", { id: session })
  })

  test("killed leaves nothing of its agent behind", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    const args = ["-c", "echo $$; setsid sleep 1000 & sleep 1000"]
    await ask.call("agent.start", { session, spec: { adapter: "command", cmd: "sh", args } })
    const { messageId } = await ask.call("agent.prompt", { session, text: "go" })
    await told(session, isText)
    expect((await ask.run(session, "pgrep -c sleep")).stdout).toBe("2\n")
    await ask.run(session, "pkill -9 node")
    await told(session, isDone(messageId))
    expect((await ask.run(session, "pgrep -c sleep")).stdout).toBe("0\n")
    await ask.call("session.delete", { id: session })
  })

  test("sleeps with its session: what it did ends with the cause, and the next prompt wakes both", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    await ask.call("agent.start", { session, spec: scripted })
    const first = await ask.call("agent.prompt", { session, text: written({ text: "a" }, { hang: true }) })
    await told(session, isText)
    await ask.call("session.hibernate", { id: session })
    await told(session, isDone(first.messageId))
    expect(await answerTo(first.messageId, first.chatId)).toMatchObject({ reason: "lost", cause: "orphaned" })
    const second = await ask.call("agent.prompt", { session, text: written({ text: "awake" }) })
    await told(session, isDone(second.messageId))
    expect(await answerTo(second.messageId, second.chatId)).toMatchObject({ reason: "end_turn", text: "awake" })
    await ask.call("session.delete", { id: session })
  })

  test("does not keep its session awake when it has nothing to do, and does while it has", async () => {
    const idle = { afterMs: 1_000, action: "hibernate" } as const
    const { id: session } = await ask.call("session.create", { network: { mode: "none" }, idle })
    await ask.call("agent.start", { session, spec: scripted })
    const { messageId } = await ask.call("agent.prompt", {
      session,
      text: written({ text: "x".repeat(30), pieces: 30, delayMs: 100 }),
    })
    const asleep = async (): Promise<void> => {
      for await (const { item } of ask.feed("session.follow", { after: 0 })) {
        const { id, session: now } = item as { id: string; session?: { state: string } }
        if (id === session && now?.state === "hibernated") return
      }
    }
    const sleeps = asleep()
    const done = told(session, isDone(messageId)).then(() => "done")
    expect(await Promise.race([done, sleeps.then(() => "asleep")])).toBe("done")
    await sleeps
    await ask.call("session.delete", { id: session })
  })

  test("is refused where its session is over", async () => {
    const { id: session } = await ask.call("session.create", { network: { mode: "none" } })
    await ask.call("session.stop", { id: session })
    await expect(ask.call("agent.start", { session, spec: scripted })).rejects.toMatchObject({ code: "conflict" })
    await ask.call("session.delete", { id: session })
  })
})
