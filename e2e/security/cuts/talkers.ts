import { setTimeout as pause } from "node:timers/promises"
import { follow } from "@warren/sdk/feed.ts"
import { readFeedSocket } from "@warren/sdk/feed-socket.ts"
import type { FeedItem } from "@warren/sdk/feed.ts"
import type { Item } from "@warren/sdk/routes.ts"
import { Client, type Ground } from "../../api/load/client.ts"

const feed = "GET /v1/sessions/{id}/feed"
const prompts = "POST /v1/sessions/{session}/agent/prompts"
type Told = FeedItem<Item<typeof feed>>
const linesPerTurn = 120
const pieces = 40
const lookMs = 10

/** Follows what an agent says, piece by piece: every item once and in order, and what the pieces come to. */
abstract class Listener extends Client {
  /** What was said in answer to each prompt, once it is done. */
  readonly answers = new Map<string, string>()
  readonly #saying = new Map<string, string>()
  /** Aborted when nothing more will be said: a feed has no end. */
  readonly over = new AbortController()
  after = 0

  take({ seq, item }: Told): void {
    this.check(seq === this.after + 1, `number ${seq} came after ${this.after}`)
    this.after = seq
    this.steps++
    if (item.type === "message.part.text-delta")
      this.#saying.set(item.messageId, (this.#saying.get(item.messageId) ?? "") + item.delta)
    if (item.type !== "message.finalize" || item.message.promptId === undefined) return
    this.check(!this.answers.has(item.message.promptId), `${item.message.promptId} was answered twice`)
    this.answers.set(item.message.promptId, this.#saying.get(item.message.id) ?? "")
    this.#saying.delete(item.message.id)
  }
}

/** By the SDK, which comes back by itself. */
export class FeedListener extends Listener {
  async run(): Promise<void> {
    const { http, session } = this.ground
    try {
      for await (const told of follow(http, feed, { id: session.id, after: this.after }, { signal: this.over.signal }))
        this.take(told)
    } catch (thrown) {
      if (!this.over.signal.aborted) throw thrown
    }
  }
}

/** By WebSockets, one after the other. */
export class SocketListener extends Listener {
  async run(): Promise<void> {
    const { http, session } = this.ground
    const once = async (): Promise<void> => {
      const which = { id: session.id, after: this.after }
      for await (const told of readFeedSocket(http, feed, which, { signal: this.over.signal })) this.take(told)
    }
    try {
      await this.insist(once)
    } catch (thrown) {
      if (!this.over.signal.aborted) throw thrown
    }
  }
}

/** Says things to an agent, each until it is acknowledged; the next when everybody has heard the answer. */
export class Prompter extends Client {
  readonly prompted: string[] = []
  readonly #listeners: readonly Listener[]

  constructor(ground: Ground, listeners: readonly Listener[]) {
    super(ground, "prompter")
    this.#listeners = listeners
  }

  async run(): Promise<void> {
    while (!this.ground.enough.aborted) await this.#turn(`said-${this.prompted.length + 1}`)
  }

  async #turn(messageId: string): Promise<void> {
    const { http, session } = this.ground
    const script = JSON.stringify({ steps: [{ text: answerTo(messageId), pieces, delayMs: 2 }] })
    await this.insist(() => http.call(prompts, { session: session.id, messageId, text: `[[script:${script}]]` }))
    this.prompted.push(messageId)
    while (this.#listeners.some(({ answers }) => !answers.has(messageId))) await pause(lookMs)
  }
}

/** Numbered throughout. */
export function answerTo(messageId: string): string {
  return Array.from({ length: linesPerTurn }, (_, n) => `${messageId}.${n + 1}\n`).join("")
}
