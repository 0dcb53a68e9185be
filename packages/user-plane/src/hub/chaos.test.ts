import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { fold, type Part } from "../chat/fold.ts"
import { HostPlaces } from "./testing/host-places.ts"
import { HubSystem } from "./testing/hub-system.ts"
import type { SessionHub } from "./session-hub.ts"

const runs = Number(process.env["WARREN_CHAOS_RUNS"] ?? 40)
const scripted = AgentSpec.parse({ adapter: "scripted" })
const words = "The quick brown fox jumps over the lazy dog. ".repeat(8)
let folder: TempFolder
let program: string

beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../../../../apps/supervisor/src/main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

/** The same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % below
  }
}

/** A reader that applies what it is told to what it has, as a page does; told to resync, it reads anew. */
class Reader {
  readonly parts = new Map<string, Part[]>()
  readonly finals = new Map<string, number>()
  readonly #known = new Map<string, number>()

  async follow(system: HubSystem, hub: SessionHub, signal: AbortSignal): Promise<void> {
    for (;;) {
      const after = hub.feed.last
      for (const { chatId } of hub.shown().channels)
        for (const message of system.chats.messages(chatId, { limit: 200 }).items) {
          this.parts.set(message.id, message.parts)
          this.#known.set(message.id, message.changedSeq)
        }
      try {
        for await (const { item } of hub.feed.read(after, signal)) {
          if (item.type === "message.create" || item.type === "message.finalize") {
            this.parts.set(item.message.id, item.message.parts)
            this.#known.set(item.message.id, item.message.changedSeq)
            if (item.type === "message.finalize")
              this.finals.set(item.message.id, (this.finals.get(item.message.id) ?? 0) + 1)
          } else if (item.type === "message.part.text-delta" || item.type === "message.part.tool-update") {
            if ((this.#known.get(item.messageId) ?? 0) >= item.seq) continue
            const change =
              item.type === "message.part.text-delta"
                ? ({ kind: "text", type: item.part, text: item.delta } as const)
                : ({ kind: "part", part: item.part } as const)
            this.parts.set(item.messageId, fold(this.parts.get(item.messageId) ?? [], [change]))
            this.#known.set(item.messageId, item.seq)
          }
        }
        return
      } catch {
        if (signal.aborted) return
      }
    }
  }
}

const textOf = (parts: readonly Part[]): string => parts.map((part) => (part.type === "text" ? part.text : "")).join("")
const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe("whatever dies at whatever moment", () => {
  test.each(Array.from({ length: runs }, (_, seed) => seed + 1))(
    "every prompt is answered or ends with its cause, nothing is lost or doubled (seed %i)",
    async (seed) => {
      const below = random(seed)
      await using places = new HostPlaces(program, folder.path)
      await using system = new HubSystem(folder.at(`${seed}.db`), places)
      const session = `s${seed}`
      let hub = await system.start(session, scripted)
      const reader = new Reader()
      let stop = new AbortController()
      let following = reader.follow(system, hub, stop.signal)
      const steps = [
        { text: words, pieces: 60, delayMs: 1 },
        { tool: "look", result: "seen" },
        { text: "The end.", pieces: 3 },
      ]
      const said = Array.from({ length: 3 }, () =>
        hub.prompt({
          text: `[[script:${JSON.stringify({ steps })}]]`,
          channel: "web:default",
          mode: "followup",
          wishes: {},
        }),
      )
      let killed = 0
      for (let blows = 1 + below(3); blows > 0; blows--) {
        for (let wait = below(150); wait > 0; wait--) await turnOfLoop()
        await new Promise((resolve) => setTimeout(resolve, below(60)))
        const blow = below(4)
        if (blow === 0) places.kill(session)
        if (blow === 0) killed++
        if (blow === 1) places.cut(session)
        if (blow >= 2) {
          if (blow === 3) places.cut(session)
          stop.abort()
          await following
          await system.restart()
          hub = system.hub.of(session)
          stop = new AbortController()
          following = reader.follow(system, hub, stop.signal)
        }
      }
      while (hub.shown().prompts.length > 0 || hub.shown().status !== "idle")
        await new Promise((resolve) => setTimeout(resolve, 5))
      await turnOfLoop()
      stop.abort()
      await following
      const { items } = system.chats.messages(said[0]?.chatId ?? "", { limit: 200 })
      let lost = 0
      for (const { messageId } of said) {
        const answers = items.filter(({ promptId }) => promptId === messageId)
        expect(answers).toHaveLength(1)
        const [answer] = answers
        if (!answer) continue
        expect(answer.state).toBe("final")
        const text = textOf(answer.parts)
        if (answer.reason === "end_turn") expect(text).toBe(`${words}The end.`)
        else {
          lost++
          expect(answer).toMatchObject({ reason: "lost", cause: "orphaned" })
          expect(`${words}The end.`.startsWith(text)).toBe(true)
        }
        expect(textOf(reader.parts.get(answer.id) ?? [])).toBe(text)
        expect(reader.finals.get(answer.id) ?? 0).toBeLessThanOrEqual(1)
      }
      expect(lost).toBeLessThanOrEqual(killed)
      expect(places.uses.get(session)).toBe(0)
    },
    30_000,
  )
})
