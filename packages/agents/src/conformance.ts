import { existsSync, readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { AgentAdapter, AgentEvent, Prompt, TurnEnd } from "./adapter.ts"

/** What a kind of agent is asked in order to be seen doing it. */
export interface Asked {
  readonly hello: string
  /** Writes its pid into the file and goes on for long. */
  sleeping(pidFile: string): string
  readonly failing: string
  /** Absent: this kind does not ask. */
  readonly asking?: { readonly content: string; readonly answer: string; readonly says: string }
}

/** What every adapter does. */
export function agentConformance(name: string, open: () => AgentAdapter, asked: Asked): void {
  describe(`${name} as an agent`, () => {
    let folder: TempFolder
    let files = 0
    // Agents take long to start, and one that has been through all this must still work.
    let shared: Promise<AgentAdapter> | undefined
    const started = (): Promise<AgentAdapter> => (shared ??= begun(open()))
    beforeAll(async () => void (folder = await TempFolder.make()))
    afterAll(async () => {
      await (await shared)?.[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    })

    test("answers, one prompt after the other, each with one end", async () => {
      const adapter = await started()
      for (let n = 0; n < 3; n++) {
        const { text, end } = await turn(adapter, asked.hello)
        expect(end).toMatchObject({ reason: "end_turn" })
        expect(text).not.toBe("")
      }
    })

    test("stops what it does when it is aborted, all of it, and takes the next prompt", async () => {
      const adapter = await started()
      const pidFile = folder.at(`${files++}`)
      const stop = new AbortController()
      const running = turn(adapter, asked.sleeping(pidFile), stop.signal)
      await until(() => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n"))
      stop.abort()
      const { events, end } = await running
      expect(end).toMatchObject({ reason: "canceled", cause: "cancelled" })
      expect(openTools(events)).toEqual([])
      const pid = Number(readFileSync(pidFile, "utf8"))
      await until(() => !isRunning(pid))
      expect((await turn(adapter, asked.hello)).end).toMatchObject({ reason: "end_turn" })
    })

    test("speaks in several channels at once", async () => {
      const adapter = await started()
      const channels = ["web:default", "telegram:1", "telegram:2"]
      const never = new AbortController().signal
      const turns = await Promise.all(channels.map((channel) => turn(adapter, asked.hello, never, channel)))
      for (const { text, end } of turns) {
        expect(end).toMatchObject({ reason: "end_turn" })
        expect(text).not.toBe("")
      }
    })

    test("does nothing when it was aborted before", async () => {
      const adapter = await started()
      const events = (await turn(adapter, asked.hello, AbortSignal.abort())).events
      expect(events).toMatchObject([{ type: "end", reason: "canceled" }])
      expect((await turn(adapter, asked.hello)).end).toMatchObject({ reason: "end_turn" })
    })

    test("says why it failed, and goes on", async () => {
      const adapter = await started()
      expect((await turn(adapter, asked.failing)).end).toMatchObject({
        reason: "error",
        cause: expect.any(String),
        error: expect.any(String),
      })
      expect((await turn(adapter, asked.hello)).end).toMatchObject({ reason: "end_turn" })
    })

    test("leaves nothing behind when it is stopped in the middle, twice", async () => {
      await using adapter = await begun(open())
      const pidFile = folder.at(`${files++}`)
      const running = turn(adapter, asked.sleeping(pidFile))
      await until(() => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n"))
      await Promise.all([adapter[Symbol.asyncDispose](), adapter[Symbol.asyncDispose]()])
      await running
      await until(() => !isRunning(Number(readFileSync(pidFile, "utf8"))))
    })

    test("knows which questions are open", async () => {
      const adapter = await started()
      expect(adapter.answer("nobody-asked", "yes")).toBe(false)
      if (!asked.asking) return
      const { content, answer, says } = asked.asking
      let text = ""
      for await (const event of adapter.prompt(prompt(content), new AbortController().signal)) {
        if (event.type === "question") {
          expect(adapter.answer(event.questionId, answer)).toBe(true)
          expect(adapter.answer(event.questionId, answer)).toBe(false)
        }
        if (event.type === "text") text += event.text
      }
      expect(text).toContain(says)
    })

    test("closes a question with its turn", async () => {
      if (!asked.asking) return
      const adapter = await started()
      const stop = new AbortController()
      let questionId = ""
      for await (const event of adapter.prompt(prompt(asked.asking.content), stop.signal)) {
        if (event.type === "question") {
          questionId = event.questionId
          stop.abort()
        }
      }
      expect(questionId).not.toBe("")
      expect(adapter.answer(questionId, "late")).toBe(false)
    })
  })
}

async function begun(adapter: AgentAdapter): Promise<AgentAdapter> {
  try {
    await adapter.start(new AbortController().signal)
    return adapter
  } catch (failure) {
    await adapter[Symbol.asyncDispose]()
    throw failure
  }
}

const lookMs = 20

/** Nobody tells when a process is gone; looking all the time would take the time from those that are waited for. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(lookMs)
}

let prompts = 0
function prompt(content: string, channel = "web:default"): Prompt {
  return { messageId: `msg${++prompts}`, channel, content }
}

interface Turn {
  readonly events: AgentEvent[]
  readonly text: string
  readonly end: TurnEnd | undefined
}

async function turn(
  adapter: AgentAdapter,
  content: string,
  signal = new AbortController().signal,
  channel?: string,
): Promise<Turn> {
  const events: AgentEvent[] = []
  for await (const event of adapter.prompt(prompt(content, channel), signal)) events.push(event)
  const ends = events.filter((event) => event.type === "end")
  expect(ends).toHaveLength(1)
  expect(events.at(-1)?.type).toBe("end")
  const text = events.map((event) => (event.type === "text" ? event.text : "")).join("")
  return { events, text, end: ends[0] }
}

/** Tool calls of which it was not told how they ended. */
function openTools(events: readonly AgentEvent[]): string[] {
  const calls = new Map(events.flatMap((event) => (event.type === "tool" ? [[event.callId, event.status]] : [])))
  return [...calls].flatMap(([callId, status]) => (status === "completed" || status === "error" ? [] : [callId]))
}

/** A zombie that nobody has waited for yet runs no more. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}
