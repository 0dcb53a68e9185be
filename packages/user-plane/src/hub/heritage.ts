import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Chats, Message } from "../chat/chats.ts"
import type { AgentRecord, HubStore } from "./hub-store.ts"

/** A turn of a conversation, and what was said up to its end. */
export interface PastTurn {
  readonly agent: AgentRecord
  readonly channel: string
  readonly title: string | undefined
  readonly messages: readonly Message[]
  /** When it was over; unknown of turns that an older Warren has seen. */
  readonly endedAt: number | undefined
  /** When the next thing was said. */
  readonly nextAt: number | undefined
}

const pageMax = 200
const chatsLookedAt = 100
/** Of a longer conversation the newest go along. */
const inheritedMax = 1_000
const recitalCharsMax = 60_000
const usualChannel = "web:default"

/** What a fork has of the conversation it comes from: its messages to be read, and for its agent the same in words. */
export class Heritage {
  readonly #store: HubStore
  readonly #chats: Chats
  readonly #clock: Clock

  constructor(store: HubStore, chats: Chats, clock: Clock) {
    this.#store = store
    this.#chats = chats
    this.#clock = clock
  }

  /** The turn that a message belongs to. */
  turn(session: string, messageId: string): PastTurn {
    const agent = this.#store.agent(session)
    const chat = this.#chats.list(chatsLookedAt, undefined, session).find(({ id }) => this.#has(id, messageId))
    if (!agent || !chat) {
      throw new Fault("not_found", "the session's conversation has no such message", {
        subject: `message:${messageId}`,
      })
    }
    const all = this.#all(chat.id)
    const end = endOf(all, messageId)
    const next = all.slice(end + 1).find(({ role }) => role === "user")
    const channel = this.#store.channels(session).find(({ chatId }) => chatId === chat.id)?.channel ?? usualChannel
    const ended = all[end]?.endedAt
    return {
      ...{ agent, channel, title: chat.title },
      messages: all.slice(0, end + 1).slice(-inheritedMax),
      endedAt: ended === undefined ? undefined : Date.parse(ended),
      nextAt: next && Date.parse(next.createdAt),
    }
  }

  /** Gives a session the agent and the conversation. Nothing runs yet: the first prompt starts it. */
  pass({ agent: { spec, wishes, provisioned }, channel, title, messages }: PastTurn, to: string): void {
    this.#store.transaction(() => {
      this.#store.putAgent(to, spec, wishes, this.#clock.now())
      if (provisioned) this.#store.setProvisioned(to, wishes, provisioned)
      const { id: chatId } = this.#chats.create({ sessionId: to, title })
      // Each has a new name, and what answers what still does.
      const names = new Map(messages.map(({ id }) => [id, newId("msg")]))
      for (const { id, role, parts, promptId, usage, cause, endedAt } of messages) {
        const answered = promptId === undefined ? undefined : names.get(promptId)
        const meta = {
          ...(answered === undefined ? {} : { promptId: answered }),
          ...(usage && { usage }),
          ...(cause && { cause }),
          ...(endedAt && { endedAt }),
        }
        this.#chats.append(chatId, { id: names.get(id), role, parts, meta })
      }
      this.#store.setChat(to, channel, chatId, recitalOf(messages))
    })
  }

  #has(chatId: string, messageId: string): boolean {
    try {
      return this.#chats.message(chatId, messageId).id === messageId
    } catch (failure) {
      if (failure instanceof Fault && failure.code === "not_found") return false
      throw failure
    }
  }

  /** What was taken back was not said. */
  #all(chatId: string): Message[] {
    const all: Message[] = []
    for (let hasMore = true; hasMore;) {
      const page = this.#chats.messages(chatId, { after: all.at(-1)?.seq ?? 0, limit: pageMax })
      all.push(...page.items)
      hasMore = page.hasMore
    }
    return all.filter(({ isReverted }) => !isReverted)
  }
}

/** Where the turn of a message ends: with the last answer to its prompt. */
function endOf(all: readonly Message[], messageId: string): number {
  const at = all.findIndex(({ id }) => id === messageId)
  const message = all[at]
  if (!message) throw new Fault("conflict", "that message was taken back", { subject: `message:${messageId}` })
  const prompt = message.role === "user" ? message.id : message.promptId
  const last = prompt === undefined ? at : all.findLastIndex(({ promptId }) => promptId === prompt)
  const end = Math.max(at, last)
  if (all[end]?.state === "open") throw new Fault("conflict", "that turn is not over", { hint: "wait, or abort it" })
  return end
}

/** The conversation in words, for an agent that was not there. */
function recitalOf(messages: readonly Message[]): string | undefined {
  const lines = messages.flatMap(({ role, parts }) => {
    const texts = parts.flatMap((part) => {
      if (part.type === "text") return [part.text]
      return part.type === "tool" ? [`(used ${part.tool}: ${part.status})`] : []
    })
    const text = texts.join("\n").trim()
    return text === "" ? [] : [`${role === "user" ? "Person" : "You"}: ${text}`]
  })
  if (lines.length === 0) return undefined
  const told = lines.join("\n\n").slice(-recitalCharsMax)
  return `This conversation goes on from another session, whose files you have. What was said there so far:\n\n${told}\n\n---\n\n`
}
