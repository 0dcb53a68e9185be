import { randomBytes } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import { retry } from "@warren/base/retry.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { Control } from "@warren/protocol/hub/frames.ts"
import type { HubDown } from "@warren/protocol/hub/messages.ts"
import type { AgentStatus, TurnCause } from "@warren/protocol/hub/words.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { Agent } from "@warren/protocol/user-plane/agents.ts"
import type { z } from "zod"
import type { Chats } from "../chat/chats.ts"
import { Bell } from "./bell.ts"
import type { Places, Stay } from "./guest.ts"
import { GuestLine } from "./guest-line.ts"
import type { HubStore } from "./hub-store.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import { shownPrompt, type PromptMode, type PromptRecord, type ShownPrompt } from "./prompt.ts"
import { TurnBook, type Item, type TurnEnding } from "./turn-book.ts"

export interface SessionHubParts {
  readonly session: string
  readonly store: HubStore
  readonly chats: Chats
  readonly places: Places
  readonly clock: Clock
  readonly log: Log
}

export interface Said {
  readonly text: string
  readonly channel: string
  readonly mode: PromptMode
  readonly messageId?: string | undefined
  readonly wishes: PromptRecord["wishes"]
}

/** The message exchange of one session: prompts wait here, one turn at a time runs, and everybody who reads is told. */
export class SessionHub implements AsyncDisposable {
  readonly feed = new Journal<Item>(limits.feedItems, Date.now() * 1000)
  readonly line: GuestLine
  readonly #parts: SessionHubParts
  readonly #book: TurnBook
  readonly #over = new AbortController()
  readonly #bell = new Bell()
  readonly #worker: Promise<void>
  /** Prompts that somebody wants ended. */
  readonly #unwanted = new Set<string>()
  #current: { readonly id: string; readonly stop: AbortController } | undefined
  #joining: Promise<void> | undefined
  #status: AgentStatus = "idle"
  #detail: string | undefined
  #models: string[] = []
  #missing = 0
  #isUnreachable = false

  constructor(parts: SessionHubParts) {
    this.#parts = parts
    this.#book = new TurnBook(parts)
    this.line = new GuestLine({
      ...parts,
      signal: this.#over.signal,
      renewed: () => this.#abandon("orphaned"),
      take: (message, note) => this.#tell(this.#book.take(message, note)),
      heard: (frame) => this.#heard(frame),
      changed: () => this.#bell.ring(),
      lost: (cause) => this.#abandon(this.#isUnreachable ? "transport" : cause),
    })
    this.#worker = this.#work()
  }

  shown(): z.output<typeof Agent> {
    const { store, session } = this.#parts
    return {
      session,
      adapter: store.agent(session)?.spec.adapter ?? "none",
      status: this.#status,
      ...(this.#detail === undefined ? {} : { detail: this.#detail }),
      isConnected: this.line.isTogether,
      models: this.#models,
      channels: store.channels(session),
      prompts: store.openPrompts(session).map(shownPrompt),
      questions: store.questions(session),
      feedSeq: this.feed.last,
    }
  }

  /** Ready for prompts when it resolves. */
  async start(spec: AgentSpec, signal: AbortSignal): Promise<void> {
    const { store, session, clock, places } = this.#parts
    const isOther = JSON.stringify(store.agent(session)?.spec) !== JSON.stringify(spec)
    store.transaction(() => store.putAgent(session, spec, clock.now()))
    if (isOther && this.line.guest) await this.#dismiss()
    const either = AbortSignal.any([signal, this.#over.signal])
    using stay = await places.stay(session, either)
    // One that the last runner had started may drive another agent.
    if (isOther && !this.line.guest) await (await stay.find(either))?.kill()
    await this.#join(stay, either)
  }

  prompt({ text, channel, mode, messageId = newId("msg"), wishes }: Said): ShownPrompt {
    const { store, session, clock } = this.#parts
    const known = store.prompt(session, messageId)
    if (known) return shownPrompt(known)
    if (store.openPrompts(session).length >= limits.promptsWaiting)
      throw new Fault("limit", `${limits.promptsWaiting} prompts wait already`)
    const dueAt = mode === "collect" ? clock.now() + limits.collectMs : 0
    const { record, items } = store.transaction(() => {
      const { chatId, items: opened } = this.#chat(channel, text)
      const { chats } = this.#parts
      const message = chats.append(chatId, { id: messageId, role: "user", parts: [{ type: "text", text }] })
      if (mode === "collect") store.postpone(session, channel, dueAt)
      const added = { id: messageId, channel, chatId, content: text, wishes, mode, dueAt, isFirst: mode === "steer" }
      const made = store.addPrompt(session, added, clock.now())
      const told: Item[] = [
        ...opened,
        { type: "message.create", message },
        { type: "prompt", prompt: shownPrompt(made) },
      ]
      return { record: made, items: told }
    })
    this.#tell(items)
    if (mode === "steer") this.abort(false, messageId)
    this.#bell.ring()
    return shownPrompt(record)
  }

  answer(questionId: string, answer: string): void {
    const { store, session } = this.#parts
    const [closed] = store.transaction(() => {
      const ids = store.closeQuestions(session, { id: questionId })
      if (ids.length > 0) this.#push({ type: "answer", questionId, answer })
      return ids
    })
    if (closed === undefined)
      throw new Fault("not_found", `nobody asks ${questionId}`, { subject: `question:${questionId}` })
    this.line.flush()
    this.#tell([{ type: "question.closed", id: questionId, answer }])
  }

  /** What runs; with `queued`, what waits as well, except for one. */
  abort(queued: boolean, except?: string): string[] {
    const { store, session } = this.#parts
    const open = store.openPrompts(session).filter(({ id }) => id !== except)
    const wanted = open.filter(({ id, state }) => queued || state === "sent" || id === this.#current?.id)
    for (const { id, state } of wanted) {
      this.#unwanted.add(id)
      if (state === "sent") {
        store.transaction(() => this.#push({ type: "abort", messageId: id }))
        this.line.flush()
        void this.#insist(id)
      } else if (id === this.#current?.id) this.#current.stop.abort(new Fault("cancelled", "aborted"))
      else this.#end(id, canceled)
    }
    return wanted.map(({ id }) => id)
  }

  revert(channel: string, messageId: string): string[] {
    const { store, session, chats } = this.#parts
    const chatId = store.chatOf(session, channel)
    if (chatId === undefined) throw new Fault("not_found", `nothing was said in ${channel}`)
    const open = store.openPrompts(session).find((one) => one.chatId === chatId && one.state === "sent")
    if (open) throw new Fault("conflict", "the agent is speaking there", { hint: "abort it first" })
    const reverted = store.transaction(() => {
      this.#push({ type: "revert", messageId, channel })
      return chats.revert(chatId, messageId).map(({ id }) => id)
    })
    for (const { id } of store.openPrompts(session).filter(({ id: one }) => reverted.includes(one)))
      this.#end(id, canceled)
    this.line.flush()
    this.#tell([{ type: "message.reverted", chatId, messageIds: reverted }])
    return reverted
  }

  renew(channel: string): string {
    const { store, session, chats } = this.#parts
    const chatId = store.transaction(() => {
      const { id } = chats.create({ sessionId: session })
      store.setChat(session, channel, id)
      this.#push({ type: "new-session", channel })
      return id
    })
    this.line.flush()
    return chatId
  }

  /** Everything ends; the next prompt starts the agent again. */
  async stop(): Promise<void> {
    this.abort(true)
    await this.#dismiss()
  }

  /** The runner goes; the supervisor and what it does go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Fault("cancelled", "the runner goes"))
    this.#bell.ring()
    await this.line.close()
    await this.#worker
  }

  async #work(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const change = this.#bell.next
      try {
        const next = this.#next()
        if (next && next.waitMs <= 0) await this.#run(next.prompt)
        else await this.#rest(change, next?.waitMs)
      } catch (failure) {
        if (this.#over.signal.aborted) return
        // The database is locked or full: nothing can be done but to try again.
        this.#parts.log("error", "hub.work", { session: this.#parts.session, message: messageOf(failure) })
        await this.#parts.clock.sleep(limits.reconnect.capMs, this.#over.signal).catch(() => undefined)
      }
    }
  }

  #next(): { readonly prompt: PromptRecord; readonly waitMs: number } | undefined {
    const { store, session, clock } = this.#parts
    const open = store.openPrompts(session).map((prompt) => ({ prompt, waitMs: prompt.dueAt - clock.now() }))
    return open.find(({ waitMs }) => waitMs <= 0) ?? open.toSorted((a, b) => a.waitMs - b.waitMs)[0]
  }

  async #rest(change: Promise<void>, waitMs: number | undefined): Promise<void> {
    // Nothing waits and nothing runs: whoever drives the agent, it can take a prompt.
    if (waitMs === undefined && this.#status !== "error") this.#show("idle")
    await this.#within(change, waitMs)
  }

  /** What is awaited, or the time: whatever is first. */
  async #within(awaited: Promise<unknown>, ms: number | undefined): Promise<void> {
    if (ms === undefined) return void (await awaited)
    const over = new AbortController()
    const late = this.#parts.clock.sleep(ms, over.signal).catch(() => undefined)
    await Promise.race([awaited, late])
    over.abort()
  }

  async #run(prompt: PromptRecord): Promise<void> {
    const current = { id: prompt.id, stop: new AbortController() }
    this.#current = current
    if (this.#unwanted.has(prompt.id) && prompt.state === "queued") current.stop.abort()
    const signal = AbortSignal.any([current.stop.signal, this.#over.signal])
    try {
      if (prompt.state === "sent") await this.#resume(signal)
      else await this.#turn(prompt, signal)
    } catch (failure) {
      if (this.#over.signal.aborted) return
      if (current.stop.signal.aborted) this.#end(prompt.id, canceled)
      else {
        this.#end(prompt.id, { reason: "error", cause: "start", error: messageOf(failure) })
        this.#show("error", messageOf(failure))
      }
    } finally {
      this.#current = undefined
      if (this.#stateOf(prompt.id) === "done") this.#unwanted.delete(prompt.id)
    }
  }

  async #turn(prompt: PromptRecord, signal: AbortSignal): Promise<void> {
    using stay = await this.#parts.places.stay(this.#parts.session, signal)
    await this.#insistOnJoining(stay, signal)
    signal.throwIfAborted()
    this.#send(prompt)
    await this.#settled(prompt.id)
  }

  /** It was under way when the last runner went: its supervisor may have gone on. */
  async #resume(signal: AbortSignal): Promise<void> {
    const { places, session } = this.#parts
    const sent = this.#current?.id ?? ""
    if (!this.line.guest && !places.isAwake(session)) return this.#abandon("orphaned")
    using stay = await places.stay(session, signal)
    if (!this.line.guest) {
      const guest = await stay.find(signal)
      if (!guest) return this.#abandon("orphaned")
      this.line.follow(guest)
    }
    await this.#settled(sent)
  }

  /** A supervisor that dies at once is given another chance. */
  #insistOnJoining(stay: Stay, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    return retry(() => this.#join(stay, signal), { triesMax: limits.triesMax, ...limits.reconnect, signal, clock })
  }

  /** There is a supervisor, and it is connected. */
  #join(stay: Stay, signal: AbortSignal): Promise<void> {
    this.#joining ??= this.#joined(stay, signal).finally(() => (this.#joining = undefined))
    return this.#joining
  }

  async #joined(stay: Stay, signal: AbortSignal): Promise<void> {
    const { store, session } = this.#parts
    if (this.line.isTogether) return
    const found = this.line.guest ?? (await stay.find(signal))
    // Nothing is started for who does not want it any more, or for a runner that goes.
    signal.throwIfAborted()
    if (!this.line.guest && found) this.line.follow(found)
    if (!found) {
      const token = randomBytes(24).toString("base64url")
      store.transaction(() => {
        store.setToken(session, token)
        store.beginLink(session, undefined)
      })
      const spec = store.agent(session)?.spec
      if (!spec) throw new Fault("not_found", "the session has no agent")
      this.line.follow(await stay.launch(spec, token, signal))
    }
    const patience = AbortSignal.any([signal, AbortSignal.timeout(limits.connectMs)])
    const followed = this.line.guest
    await this.#bell.until(() => this.line.isTogether || !this.line.guest, patience)
    if (this.line.isTogether) return
    const { guest } = this.line
    await guest?.kill()
    signal.throwIfAborted()
    const what = guest ? "the supervisor did not connect" : "the supervisor ended as soon as it was started"
    throw new Fault("unavailable", `${what}${followed?.complaint ? `: ${followed.complaint}` : ""}`)
  }

  #send(prompt: PromptRecord): void {
    const { store, session } = this.#parts
    const items = store.transaction(() => {
      const { content, items: collected } = this.#collect(prompt)
      this.#push({ type: "prompt", messageId: prompt.id, channel: prompt.channel, content, ...prompt.wishes })
      const sent = shownPrompt(store.move(session, prompt.id, "send"))
      return [...collected, { type: "prompt", prompt: sent } satisfies Item]
    })
    this.#tell(items)
    this.#show("thinking")
    this.line.flush()
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
    const { clock, places, session } = this.#parts
    let apartSince: number | undefined
    while (!this.#over.signal.aborted) {
      const change = this.#bell.next
      if (this.#stateOf(id) !== "sent") return
      const isApart = !this.line.isTogether && !places.isPaused(session)
      apartSince = isApart ? (apartSince ?? clock.monotonic()) : undefined
      const leftMs = apartSince === undefined ? undefined : apartSince + limits.unreachableMs - clock.monotonic()
      if (leftMs !== undefined && leftMs <= 0) await this.#giveUp()
      else await this.#within(change, leftMs)
    }
  }

  /** Its process lives, and nobody reaches it. */
  async #giveUp(): Promise<void> {
    this.#isUnreachable = true
    try {
      if (this.line.guest) await this.line.guest.kill()
      else this.#abandon("transport")
      await this.#bell.until(() => this.line.guest === undefined, this.#over.signal)
    } finally {
      this.#isUnreachable = false
    }
  }

  /** The supervisor that had it is no more. What it had not taken is tried again, what it had ends. */
  #abandon(cause: TurnCause): void {
    const { store, session } = this.#parts
    const sent = store.openPrompts(session).filter(({ state }) => state === "sent")
    for (const { id, tries } of sent) {
      if (this.#unwanted.has(id)) this.#end(id, canceled)
      else if (store.isInOutbox(session, id) && tries < limits.triesMax) this.#requeue(id)
      else this.#end(id, { reason: "lost", cause, error: losses[cause] ?? "what drove the agent died" })
    }
    this.#bell.ring()
  }

  #requeue(id: string): void {
    const { store, session } = this.#parts
    const prompt = store.transaction(() => {
      store.beginLink(session, undefined)
      return shownPrompt(store.move(session, id, "requeue"))
    })
    this.#tell([{ type: "prompt", prompt }])
  }

  /** Process truth: a turn that should be there and is not, twice, has been lost. */
  #heard(frame: Control): void {
    if (frame.type !== "ping" || !frame.truth) return
    const { store, session } = this.#parts
    const { turns } = frame.truth
    const lost = store
      .openPrompts(session)
      .filter(({ id, state }) => state === "sent" && !turns.includes(id) && !store.isInOutbox(session, id))
    this.#missing = lost.length > 0 ? this.#missing + 1 : 0
    if (this.#missing < limits.missingMax) return
    this.#missing = 0
    for (const { id } of lost)
      this.#end(id, { reason: "lost", cause: "orphaned", error: "the supervisor knows nothing of it" })
  }

  /** Whoever does not heed an abort is ended. */
  async #insist(id: string): Promise<void> {
    await this.#parts.clock.sleep(limits.abortMs, this.#over.signal).catch(() => undefined)
    if (!this.#over.signal.aborted && this.#stateOf(id) === "sent") await this.line.guest?.kill()
  }

  /** Asks the supervisor to go, and sees to it. */
  async #dismiss(): Promise<void> {
    const { store, clock } = this.#parts
    const { guest } = this.line
    if (!guest) return
    store.transaction(() => this.#push({ type: "stop" }))
    this.line.flush()
    const patience = new AbortController()
    const late = clock
      .sleep(limits.stopMs, AbortSignal.any([patience.signal, this.#over.signal]))
      .catch(() => undefined)
    await Promise.race([guest.ended, late])
    patience.abort()
    await guest.kill()
    await this.#bell.until(() => this.line.guest !== guest, this.#over.signal)
  }

  /** The conversation of a channel; one that begins is named after what is said first. */
  #chat(channel: string, text: string): { chatId: string; items: Item[] } {
    const { store, session, chats } = this.#parts
    const known = store.chatOf(session, channel)
    const title = (text.trim().split("\n")[0] ?? "").slice(0, titleCharsMax)
    if (known !== undefined) {
      if (chats.get(known).title !== undefined) return { chatId: known, items: [] }
      chats.rename(known, title)
      return { chatId: known, items: [{ type: "title", chatId: known, title }] }
    }
    const { id } = chats.create({ sessionId: session, title })
    store.setChat(session, channel, id)
    return { chatId: id, items: [{ type: "title", chatId: id, title }] }
  }

  #push(message: HubDown): void {
    this.#parts.store.memory(this.#parts.session).push(message)
  }

  #end(id: string, ending: TurnEnding): void {
    this.#tell(this.#book.end(id, ending))
  }

  #stateOf(id: string): PromptRecord["state"] {
    return this.#parts.store.prompt(this.#parts.session, id)?.state ?? "done"
  }

  #tell(items: readonly Item[]): void {
    for (const item of items) {
      if (item.type === "agent.status") this.#show(item.status, item.detail)
      else this.feed.append(item)
      if (item.type === "models") this.#models = item.models
      if (item.type === "prompt" || item.type === "message.finalize") this.#bell.ring()
    }
  }

  #show(status: AgentStatus, detail?: string): void {
    if (this.#status === status && this.#detail === detail) return
    this.#status = status
    this.#detail = detail
    this.feed.append({ type: "agent.status", status, ...(detail === undefined ? {} : { detail }) })
  }
}

const titleCharsMax = 80
const canceled: TurnEnding = { reason: "canceled", cause: "cancelled" }
const losses: Readonly<Partial<Record<TurnCause, string>>> = {
  oom: "the agent needed more memory than its session has",
  cancelled: "its session was stopped",
}
