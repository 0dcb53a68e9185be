import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { follow } from "@warren/sdk/feed.ts"
import { Http } from "@warren/sdk/http.ts"
import type { Output } from "@warren/sdk/routes.ts"
import { isPiece, runEvents } from "@warren/sdk/run-events.ts"
import type { Session } from "@warren/sdk/session.ts"
import { sessionHubLimits } from "@warren/user-plane/hub/limits.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../../api/system.ts"
import { record } from "../results.ts"

/** How long there is no control plane. `WARREN_OUTAGE_SECONDS=600` for who wants to be sure. */
const seconds = Number(process.env["WARREN_OUTAGE_SECONDS"] ?? 3)
const mebibyte = 2 ** 20
const feed = "GET /v1/sessions/{id}/feed"
const attach = "GET /v1/sessions/{session}/processes/{pid}/attach"
/** Fewer items than a feed keeps, and more than it ever keeps: it is cut when it has twice as many. */
const few = 200
const calls = sessionHubLimits.feedItems + 200
/** What is kept of a program's output unless it is asked for more, and what one says that says too much. */
const replayBytes = mebibyte
const linesFit = 20_000
const linesOver = 600_000
/** What a runner may take more while nobody reads: what it keeps has a limit, however long that is. */
const moreBytesMax = 160 * mebibyte
const sampleMs = 250

type Message = Output<"GET /v1/chats/{id}/messages">["items"][number]

/** Agents and programs work on while there is nobody to tell it to. */
describe.skipIf(process.getuid?.() !== 0)(
  `no control plane for ${seconds} s`,
  { timeout: 240_000 + seconds * 2_000 },
  () => {
    let system: ApiSystem
    let http: Http
    const sessions: Session[] = []

    beforeAll(async () => {
      system = await ApiSystem.start()
      http = new Http({ url: system.url, token: system.token, fetch })
    }, 120_000)
    afterAll(async () => {
      for (const session of sessions) await session.delete()
      await system?.[Symbol.asyncDispose]()
    }, 120_000)

    test("what agents and programs say meanwhile comes afterwards, in order; what is over a cap is left out, and that is said (FT-19)", async () => {
      const [quiet, loud] = [await withAgent("quiet"), await withAgent("loud")]
      const fits = await quiet.session.spawn(slowly(linesFit))
      const over = await quiet.session.spawn(`seq ${linesOver}`)
      const held = await quiet.session.spawn(`seq ${linesOver}`, { hold: true })
      const everyMs = Math.ceil((seconds * 1_000) / few)
      await say(quiet.session, "quiet-1", [{ times: few, everyMs }])
      await say(loud.session, "loud-1", callsWith(Math.floor((seconds * 1_000) / calls)))
      // They were there before it, and come back by themselves.
      const stayed = [allOf(fits.output()), answerIn(quiet.session, quiet.feedSeq, "quiet-1")] as const
      const { runner } = system.pids

      const before = lookAt()
      await system.killControl()
      const down = Date.now()
      const most = await mostDuring(seconds * 1_000)
      await system.startControl()
      const up = Date.now()
      expect(system.pids.runner).toBe(runner)
      expect(most.residentBytes - before.residentBytes).toBeLessThan(moreBytesMax)

      // All of the feed that there is room for, to who stayed and to who comes later.
      const texts = [await stayed[1], await answerIn(quiet.session, quiet.feedSeq, "quiet-1")]
      const times = (texts[0] ?? "").trim().split("\n").map(Number)
      expect([times.length, times]).toEqual([few, times.toSorted((a, b) => a - b)])
      expect(texts[1]).toBe(texts[0])
      expect(times.filter((at) => at > down && at < up).length).toBeGreaterThan(few / 4)

      // More than a feed keeps: it is said, and what was said is in the chat, every call once and in order.
      await isDone(loud.session)
      await expect(answerIn(loud.session, loud.feedSeq, "loud-1")).rejects.toMatchObject({ code: "resync" })
      expect(await calledIn(loud.session)).toEqual(Array.from({ length: calls }, (_, n) => n))
      const { feedSeq } = await http.call("GET /v1/sessions/{session}/agent", { session: loud.session.id })
      await say(loud.session, "loud-2", [{ text: "after it" }])
      expect(await answerIn(loud.session, feedSeq, "loud-2")).toBe("after it")

      // The same for programs: all of it, or how much is missing; and one that waits for its reader loses nothing.
      for (const { text, dropped } of [await stayed[0], await allOf(fits.output())])
        expect([text === counted(linesFit), dropped]).toEqual([true, 0])
      const all = counted(linesOver)
      const kept = await allOf(over.output())
      expect([kept.dropped + kept.text.length, kept.text.length]).toEqual([all.length, replayBytes])
      expect(all.endsWith(kept.text)).toBe(true)
      const waited = await allOf(runEvents(http, attach, { session: quiet.session.id, pid: held.pid, hold: true }))
      expect([waited.text === all, waited.dropped]).toEqual([true, 0])

      const after = lookAt()
      expect(after.residentBytes - before.residentBytes).toBeLessThan(moreBytesMax)
      expect(after.diskBytes - before.diskBytes).toBeLessThan(moreBytesMax)
      const mib = (bytes: number): number => Math.round(bytes / mebibyte)
      record("outage", {
        ...{
          cases: seconds,
          items: few + 2 * calls,
          droppedBytes: kept.dropped,
          feedItems: sessionHubLimits.feedItems,
        },
        ...{ replayBytes, runnerMiBMore: mib(most.residentBytes - before.residentBytes) },
        ...{ diskMiBMore: mib(after.diskBytes - before.diskBytes) },
      })
    })

    async function withAgent(name: string): Promise<{ readonly session: Session; readonly feedSeq: number }> {
      const session = (await system.warren.sessions.create({ name, network: { mode: "none" } })).keep()
      sessions.push(session)
      const asked = { session: session.id, spec: { adapter: "scripted" } } as const
      const { feedSeq } = await http.call("POST /v1/sessions/{session}/agent", asked)
      return { session, feedSeq }
    }

    async function say({ id }: Session, messageId: string, steps: readonly object[]): Promise<void> {
      const text = `[[script:${JSON.stringify({ steps })}]]`
      await http.call("POST /v1/sessions/{session}/agent/prompts", { session: id, messageId, text })
    }

    /** What is said in answer to a prompt, put together of the feed: each item once, none left out. */
    async function answerIn({ id }: Session, after: number, prompt: string): Promise<string> {
      let text = ""
      let last = after
      for await (const { seq, item } of follow(http, feed, { id, after })) {
        if (seq !== last + 1) throw new Error(`number ${seq} came after ${last}`)
        last = seq
        if (item.type === "message.part.text-delta") text += item.delta
        if (item.type === "prompt" && item.prompt.messageId === prompt && item.prompt.state === "done") break
      }
      return text
    }

    async function isDone({ id }: Session): Promise<void> {
      const prompts = async () => (await http.call("GET /v1/sessions/{session}/agent", { session: id })).prompts
      await expect.poll(prompts, { timeout: 120_000 }).toEqual([])
    }

    /** What each call of a tool came to, in the order of the chat. */
    async function calledIn({ id }: Session): Promise<unknown[]> {
      const { items } = await http.call("GET /v1/chats", { sessionId: id })
      const results: unknown[] = []
      for (let after = 0, hasMore = true; hasMore;) {
        const page = await http.call("GET /v1/chats/{id}/messages", { id: items[0]?.id ?? "", after, limit: 50 })
        for (const message of page.items) {
          after = message.seq
          results.push(...resultsOf(message))
        }
        hasMore = page.hasMore
      }
      return results
    }

    async function mostDuring(ms: number): Promise<Look> {
      let most = lookAt()
      for (const end = performance.now() + ms; performance.now() < end; await pause(sampleMs)) {
        const look = lookAt()
        if (look.residentBytes > most.residentBytes) most = look
      }
      return most
    }

    function lookAt(): Look {
      const status = readFileSync(`/proc/${system.pids.runner}/status`, "utf8")
      const residentBytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
      return {
        residentBytes,
        diskBytes: ["internal", "logs"].reduce((sum, name) => sum + sizeOf(system.home.at(name)), 0),
      }
    }
  },
)

interface Look {
  readonly residentBytes: number
  /** What the runner writes down; what sandboxes stand on is not its spool. */
  readonly diskBytes: number
}

const callsWith = (delayMs: number): object[] =>
  Array.from({ length: calls }, (_, n) => ({ tool: "look", args: { n }, result: n, delayMs }))

function resultsOf({ parts }: Message): unknown[] {
  return parts.flatMap((part) => (part.type === "tool" && part.status === "completed" ? [part.result] : []))
}

/** So many lines, over the whole of the outage. */
function slowly(lines: number): string {
  const rounds = 100
  return `for r in $(seq ${rounds}); do seq $(((r - 1) * ${lines / rounds} + 1)) $((r * ${lines / rounds})); sleep ${seconds / rounds}; done`
}

function counted(lines: number): string {
  return Array.from({ length: lines }, (_, n) => `${n + 1}\n`).join("")
}

async function allOf(said: AsyncIterable<object>): Promise<{ readonly text: string; readonly dropped: number }> {
  const pieces: string[] = []
  let dropped = 0
  for await (const piece of said) {
    if (isPiece(piece)) pieces.push(piece.text)
    else if ("dropped" in piece) dropped += Number(piece.dropped)
  }
  return { text: pieces.join(""), dropped }
}

function sizeOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats?.isDirectory()) return stats?.size ?? 0
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
