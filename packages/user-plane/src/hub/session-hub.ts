import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { HubDown } from "@warren/protocol/hub/messages.ts"
import type { Journal } from "@warren/protocol/journal.ts"
import type { Agent } from "@warren/protocol/user-plane/agents.ts"
import type { Provision } from "@warren/protocol/user-plane/provision.ts"
import type { z } from "zod"
import type { Chats, Message } from "../chat/chats.ts"
import { Bell } from "./bell.ts"
import { canceled, Endings } from "./endings.ts"
import type { Places } from "./guest.ts"
import { GuestLine } from "./guest-line.ts"
import type { HubStore } from "./hub-store.ts"
import { Joining } from "./joining.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import { shownPrompt, type PromptMode, type PromptRecord, type ShownPrompt } from "./prompt.ts"
import { PromptQueue } from "./prompt-queue.ts"
import { ToolDesk, type ToolAnswerer } from "./tool-desk.ts"
import { Teller } from "./teller.ts"
import { TurnBook, type Item } from "./turn-book.ts"

export interface SessionHubParts {
  readonly session: string
  readonly store: HubStore
  readonly chats: Chats
  readonly places: Places
  readonly clock: Clock
  readonly log: Log
  readonly tools?: ToolAnswerer | undefined
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
  readonly line: GuestLine
  readonly #parts: SessionHubParts
  readonly #over = new AbortController()
  readonly #bell = new Bell()
  readonly #teller: Teller
  readonly #joining: Joining
  readonly #endings: Endings
  readonly #queue: PromptQueue

  constructor(parts: SessionHubParts) {
    this.#parts = parts
    const book = new TurnBook(parts)
    const teller = new Teller(this.#bell)
    this.#teller = teller
    const common = { ...parts, book, teller, bell: this.#bell, over: this.#over.signal }
    const endings = new Endings(common)
    this.#endings = endings
    const desk = new ToolDesk({ ...common, flush: () => this.line.flush() })
    this.line = new GuestLine({
      ...parts,
      signal: this.#over.signal,
      renewed: () => endings.abandon("orphaned"),
      take: (message, note) => {
        teller.tell(book.take(message, note))
        if (message.type === "tool-call") desk.take(message)
      },
      heard: (frame) => endings.heard(frame),
      changed: () => this.#bell.ring(),
      lost: (cause) => endings.abandon(this.#queue.isUnreachable ? "transport" : cause),
    })
    this.#joining = new Joining({ ...common, line: this.line })
    this.#queue = new PromptQueue({ ...common, line: this.line, joining: this.#joining, endings })
  }

  get feed(): Journal<Item> {
    return this.#teller.feed
  }

  shown(): z.output<typeof Agent> {
    const { store, session } = this.#parts
    const { status, detail, models } = this.#teller
    const { spec, provisioned } = store.agent(session) ?? {}
    return {
      session,
      adapter: spec?.adapter ?? "none",
      status,
      ...(detail === undefined ? {} : { detail }),
      isConnected: this.line.isTogether,
      // One that does not say which it has can be asked for those it was given.
      models: models.length > 0 ? models : modelsOf(spec),
      channels: store.channels(session),
      prompts: store.openPrompts(session).map(shownPrompt),
      questions: store.questions(session),
      ...(provisioned === undefined ? {} : { provisioned }),
      feedSeq: this.feed.last,
    }
  }

  /** Ready for prompts when it resolves. */
  async start(spec: AgentSpec, wishes: Provision, signal: AbortSignal): Promise<void> {
    const { store, session, clock, places } = this.#parts
    const known = store.agent(session)
    const isOther = JSON.stringify([known?.spec, known?.wishes]) !== JSON.stringify([spec, wishes])
    if (isOther) {
      store.transaction(() => store.putAgent(session, spec, wishes, clock.now()))
      this.#teller.tell([{ type: "models", models: modelsOf(spec) }])
    }
    failpoint("agent/noted")
    // OpenCode takes another configuration while it runs, between turns: nothing it does or remembers is lost.
    const areOpenCode = known?.spec.adapter === "opencode" && spec.adapter === "opencode"
    const isSameWork = JSON.stringify(known?.wishes) === JSON.stringify(wishes)
    if (isOther && areOpenCode && isSameWork && this.line.isTogether) {
      store.transaction(() => this.#push({ type: "opencode-config", spec }))
      return this.line.flush()
    }
    if (isOther && this.line.guest) await this.#joining.dismiss()
    const either = AbortSignal.any([signal, this.#over.signal])
    using stay = await places.stay(session, either)
    // One that the last runner had started may drive another agent.
    if (isOther && !this.line.guest) await (await stay.find(either))?.kill()
    await this.#joining.provision(stay, either)
    await this.#joining.join(stay, either)
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
      const message = chats.append(chatId, { id: messageId, role: "user", parts: partsOf(text, wishes) })
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
    failpoint("prompt/queued")
    this.#teller.tell(items)
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
    this.#teller.tell([{ type: "question.closed", id: questionId, answer }])
  }

  /** What runs; with `queued`, what waits as well, except for one. */
  abort(queued: boolean, except?: string): string[] {
    const { store, session } = this.#parts
    const open = store.openPrompts(session).filter(({ id }) => id !== except)
    const wanted = open.filter(({ id, state }) => queued || state === "sent" || id === this.#queue.current)
    for (const { id, state } of wanted) {
      this.#endings.unwanted.add(id)
      if (state === "sent") {
        store.transaction(() => this.#push({ type: "abort", messageId: id }))
        this.line.flush()
        void this.#endings.insist(id, this.line)
      } else if (id === this.#queue.current) this.#queue.drop()
      else this.#endings.end(id, canceled)
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
      this.#endings.end(id, canceled)
    this.line.flush()
    this.#teller.tell([{ type: "message.reverted", chatId, messageIds: reverted }])
    return reverted
  }

  /** Something the agent shows beside its answers, in the conversation it is in. */
  show(parts: Message["parts"]): Message {
    const { store, session, chats } = this.#parts
    const sent = store.openPrompts(session).find(({ state }) => state === "sent")
    const message = store.transaction(() => {
      const chatId = sent?.chatId ?? store.chatOf(session, usualChannel) ?? this.#untitled(usualChannel)
      return chats.append(chatId, { role: "assistant", parts })
    })
    this.#teller.tell([{ type: "message.create", message }])
    return message
  }

  renew(channel: string): string {
    const { store } = this.#parts
    const chatId = store.transaction(() => {
      this.#push({ type: "new-session", channel })
      return this.#untitled(channel)
    })
    this.line.flush()
    return chatId
  }

  /** Aborts when the session is gone, or the runner goes. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** Everything ends; the next prompt starts the agent again. */
  async stop(): Promise<void> {
    this.abort(true)
    await this.#joining.dismiss()
  }

  /** The runner goes; the supervisor and what it does go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Fault("cancelled", "the runner goes"))
    this.#bell.ring()
    await this.line.close()
    await this.#queue.ended()
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

  /** A conversation that is named by what is said first. */
  #untitled(channel: string): string {
    const { store, session, chats } = this.#parts
    const { id } = chats.create({ sessionId: session })
    store.setChat(session, channel, id)
    return id
  }

  #push(message: HubDown): void {
    this.#parts.store.memory(this.#parts.session).push(message)
  }
}

const titleCharsMax = 80
const usualChannel = "web:default"

/** What a person said, and the files that came along. */
function partsOf(text: string, { attachments = [] }: PromptRecord["wishes"]) {
  const files = attachments.map(({ filename, mime, url }) => {
    const path = url.startsWith("file:///") ? decodeURIComponent(new URL(url).pathname) : undefined
    const name = filename ?? path?.split("/").at(-1) ?? "file"
    return { type: "file" as const, name, mediaType: mime, ...(path === undefined ? { url } : { path }) }
  })
  return [{ type: "text" as const, text }, ...files]
}

function modelsOf(spec: AgentSpec | undefined): string[] {
  return spec?.adapter === "opencode" ? spec.models : []
}
