import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { promptCharsMax } from "@warren/protocol/hub/words.ts"
import type { Bell } from "./bell.ts"
import { canceled, type Endings } from "./endings.ts"
import type { Places } from "./guest.ts"
import type { GuestLine } from "./guest-line.ts"
import type { HubStore } from "./hub-store.ts"
import type { Joining } from "./joining.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import { shownPrompt, type PromptRecord } from "./prompt.ts"
import type { Teller } from "./teller.ts"
import type { Item } from "./turn-book.ts"

export interface PromptQueueParts {
  readonly session: string
  readonly store: HubStore
  readonly places: Places
  readonly clock: Clock
  readonly log: Log
  readonly line: GuestLine
  readonly bell: Bell
  readonly teller: Teller
  readonly joining: Joining
  readonly endings: Endings
  readonly over: AbortSignal
}

/** Takes prompts one after the other, each from being queued to its end. */
export class PromptQueue {
  readonly #parts: PromptQueueParts
  readonly #worker: Promise<void>
  #current: { readonly id: string; readonly stop: AbortController } | undefined
  #isUnreachable = false

  constructor(parts: PromptQueueParts) {
    this.#parts = parts
    this.#worker = this.#work()
  }

  /** Which one it has in hand. */
  get current(): string | undefined {
    return this.#current?.id
  }

  /** The supervisor is being ended because nobody reaches it. */
  get isUnreachable(): boolean {
    return this.#isUnreachable
  }

  /** Lets go of the one in hand, which has not been sent yet. */
  drop(): void {
    this.#current?.stop.abort(new Fault("cancelled", "aborted"))
  }

  /** Resolves after the runner has gone. */
  ended(): Promise<void> {
    return this.#worker
  }

  async #work(): Promise<void> {
    const { over, bell, log, session, clock } = this.#parts
    while (!over.aborted) {
      const change = bell.next
      try {
        const next = this.#next()
        if (next && next.waitMs <= 0) await this.#run(next.prompt)
        else await this.#rest(change, next?.waitMs)
      } catch (failure) {
        if (over.aborted) return
        // The database is locked or full: nothing can be done but to try again.
        log("error", "hub.work", { session, message: messageOf(failure) })
        await clock.sleep(limits.reconnect.capMs, over).catch(() => undefined)
      }
    }
  }

  #next(): { readonly prompt: PromptRecord; readonly waitMs: number } | undefined {
    const { store, session, clock } = this.#parts
    const open = store.openPrompts(session).map((prompt) => ({ prompt, waitMs: waitOf(prompt.dueAt - clock.now()) }))
    return open.find(({ waitMs }) => waitMs <= 0) ?? open.toSorted((a, b) => a.waitMs - b.waitMs)[0]
  }

  async #rest(change: Promise<void>, waitMs: number | undefined): Promise<void> {
    const { teller } = this.#parts
    // Nothing waits and nothing runs: whoever drives the agent, it can take a prompt.
    if (waitMs === undefined && teller.status !== "error") teller.show("idle")
    await this.#within(change, waitMs)
  }

  /** What is awaited, or the time: whatever is first. */
  async #within(awaited: Promise<unknown>, ms: number | undefined): Promise<void> {
    if (ms === undefined) return void (await awaited)
    const passed = new AbortController()
    const late = this.#parts.clock.sleep(ms, passed.signal).catch(() => undefined)
    await Promise.race([awaited, late])
    passed.abort()
  }

  async #run(prompt: PromptRecord): Promise<void> {
    const { over, endings, teller } = this.#parts
    const current = { id: prompt.id, stop: new AbortController() }
    this.#current = current
    if (endings.unwanted.has(prompt.id) && prompt.state === "queued") current.stop.abort()
    const signal = AbortSignal.any([current.stop.signal, over])
    try {
      if (prompt.state === "sent") await this.#resume(prompt.id, signal)
      else await this.#turn(prompt, signal)
    } catch (failure) {
      if (over.aborted) return
      if (current.stop.signal.aborted) endings.end(prompt.id, canceled)
      else {
        endings.end(prompt.id, { reason: "error", cause: "start", error: messageOf(failure) })
        teller.show("error", messageOf(failure))
      }
    } finally {
      this.#current = undefined
      if (endings.stateOf(prompt.id) === "done") endings.unwanted.delete(prompt.id)
    }
  }

  async #turn(prompt: PromptRecord, signal: AbortSignal): Promise<void> {
    const { places, session, joining } = this.#parts
    using stay = await places.stay(session, signal)
    await joining.insist(stay, signal)
    signal.throwIfAborted()
    this.#send(prompt)
    await this.#settled(prompt.id)
  }

  /** It was under way when the last runner went: its supervisor may have gone on. */
  async #resume(id: string, signal: AbortSignal): Promise<void> {
    const { places, session, line, endings } = this.#parts
    if (!line.guest && !places.isAwake(session)) return endings.abandon("orphaned")
    using stay = await places.stay(session, signal)
    if (!line.guest) {
      const guest = await stay.find(signal)
      if (!guest) return endings.abandon("orphaned")
      line.follow(guest)
    }
    await this.#settled(id)
  }

  #send(prompt: PromptRecord): void {
    const { store, session, teller, line } = this.#parts
    const items = store.transaction(() => {
      const { content: said, items: collected } = this.#collect(prompt)
      const { id: messageId, channel, wishes } = prompt
      const content = this.#recited(prompt, said)
      store.memory(session).push({ type: "prompt", messageId, channel, content, ...wishes })
      const sent = shownPrompt(store.move(session, prompt.id, "send"))
      return [...collected, { type: "prompt", prompt: sent } satisfies Item]
    })
    failpoint("prompt/sent")
    teller.tell(items)
    teller.show("thinking")
    line.flush()
  }

  /** The first prompt of a fork begins with what was said before; written down, so that it is not lost with a supervisor. */
  #recited({ id, channel }: PromptRecord, said: string): string {
    const { store, session } = this.#parts
    const recital = store.takeRecital(session, channel)
    if (recital === undefined) return said
    const content = `${recital.slice(-Math.max(0, promptCharsMax - said.length))}${said}`
    store.setContent(session, id, content)
    return content
  }

  /** What was said in several pieces is one prompt. */
  #collect(prompt: PromptRecord): { content: string; items: Item[] } {
    if (prompt.mode !== "collect") return { content: prompt.content, items: [] }
    const { store, session } = this.#parts
    const isAlike = (one: PromptRecord): boolean =>
      one.mode === "collect" && one.state === "queued" && one.channel === prompt.channel
    const others = store.openPrompts(session).filter((one) => isAlike(one) && one.id !== prompt.id)
    const content = [prompt, ...others].map((one) => one.content).join("\n\n")
    store.setContent(session, prompt.id, content)
    const items = others.map(({ id }): Item => ({
      type: "prompt",
      prompt: shownPrompt(store.move(session, id, "end")),
    }))
    return { content, items }
  }

  /** Resolves when the prompt is not the supervisor's any more. */
  async #settled(id: string): Promise<void> {
    const { clock, places, session, over, bell, endings, line } = this.#parts
    let apartSince: number | undefined
    while (!over.aborted) {
      const change = bell.next
      if (endings.stateOf(id) !== "sent") return
      const isApart = !line.isTogether && !places.isPaused(session)
      apartSince = isApart ? (apartSince ?? clock.monotonic()) : undefined
      const leftMs = apartSince === undefined ? undefined : apartSince + limits.unreachableMs - clock.monotonic()
      if (leftMs !== undefined && leftMs <= 0) await this.#giveUp()
      else await this.#within(change, leftMs)
    }
  }

  /** Its process lives, and nobody reaches it. */
  async #giveUp(): Promise<void> {
    const { line, endings, bell, over } = this.#parts
    this.#isUnreachable = true
    try {
      if (line.guest) await line.guest.kill()
      else endings.abandon("transport")
      await bell.until(() => line.guest === undefined, over)
    } finally {
      this.#isUnreachable = false
    }
  }
}

/** Nothing waits longer than for more of its kind: what seems to has seen the wall clock jump back, and has waited enough. */
function waitOf(leftMs: number): number {
  return leftMs > limits.collectMs ? 0 : leftMs
}
