import type { Answer, Item } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"

type Plane = typeof userPlane
export type FeedItem = Item<Plane, "session.feed">
export type Agent = Answer<Plane, "agent.get">
export type Message = Answer<Plane, "chat.messages">["items"][number]
export type Part = Message["parts"][number]
export type Question = Agent["questions"][number]

/** What one chat has become, kept up with what is told. Told the same twice, it stays the same. */
export class Transcript {
  readonly messages = new Map<string, Message>()
  readonly questions: Question[] = []
  readonly #open = new Set<string>()
  readonly #done = new Set<string>()
  status: Agent["status"] = "idle"

  /** Prompts that wait or are worked on. */
  get isBusy(): boolean {
    return this.#open.size > 0
  }

  isOpen(messageId: string): boolean {
    return this.#open.has(messageId)
  }

  /** Said a moment ago: it is open until the end of it is told, or was told already. */
  expect(messageId: string): void {
    if (!this.#done.has(messageId)) this.#open.add(messageId)
  }

  /** How everything is now, also after something was missed. */
  load({ prompts, questions, status }: Agent, messages: readonly Message[]): void {
    this.#open.clear()
    for (const { messageId } of prompts) this.#open.add(messageId)
    this.questions.splice(0, this.questions.length, ...questions)
    this.status = status
    for (const message of messages) this.messages.set(message.id, message)
  }

  /** The message it changed, if it is about one. */
  apply(item: FeedItem): Message | undefined {
    switch (item.type) {
      case "message.create":
      case "message.finalize":
        return this.#put(item.message)
      case "message.part.text-delta":
        return this.#change(item.messageId, item.seq, (parts) => withText(parts, item.part, item.delta))
      case "message.part.tool-update":
        return this.#change(item.messageId, item.seq, (parts) => withPart(parts, item.part))
      case "prompt":
        if (item.prompt.state === "done") this.#end(item.prompt.messageId)
        else this.#open.add(item.prompt.messageId)
        return undefined
      case "question":
        if (!this.questions.some(({ id }) => id === item.question.id)) this.questions.push(item.question)
        return undefined
      case "question.closed": {
        const at = this.questions.findIndex(({ id }) => id === item.id)
        if (at >= 0) this.questions.splice(at, 1)
        return undefined
      }
      case "agent.status":
        this.status = item.status
        return undefined
      case "error":
      case "files.changed":
      case "git.state":
      case "message.reverted":
      case "model.switched":
      case "models":
      case "provision":
      case "title":
        return undefined
    }
  }

  /** Remembered a while: whoever said it may hear of its end before that it was taken. */
  #end(messageId: string): void {
    this.#open.delete(messageId)
    this.#done.add(messageId)
    const [oldest] = this.#done
    if (this.#done.size > doneMax && oldest !== undefined) this.#done.delete(oldest)
  }

  #put(message: Message): Message | undefined {
    const known = this.messages.get(message.id)
    if (known && known.changedSeq >= message.changedSeq && known.state === message.state) return undefined
    this.messages.set(message.id, message)
    return message
  }

  #change(id: string, seq: number, change: (parts: readonly Part[]) => Part[]): Message | undefined {
    const known = this.messages.get(id)
    if (!known || known.changedSeq >= seq) return undefined
    const next = { ...known, parts: change(known.parts), changedSeq: seq }
    this.messages.set(id, next)
    return next
  }
}

const doneMax = 100

function withText(parts: readonly Part[], type: "text" | "reasoning", delta: string): Part[] {
  const last = parts.at(-1)
  if (last?.type !== type) return [...parts, { type, text: delta }]
  return [...parts.slice(0, -1), { type, text: last.text + delta }]
}

/** A tool that is told of again is the same one. */
function withPart(parts: readonly Part[], part: Part): Part[] {
  const at = part.type === "tool" ? parts.findIndex((one) => one.type === "tool" && one.callId === part.callId) : -1
  return at < 0 ? [...parts, part] : parts.with(at, part)
}
