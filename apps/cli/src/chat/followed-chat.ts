import { Fault } from "@warren/base/fault.ts"
import type { Asking } from "../control/far-warren.ts"
import { Transcript, type FeedItem, type Message } from "./transcript.ts"

export interface FollowedParts {
  readonly runner: Asking
  readonly session: string
  readonly channel: string
}

/** What was missed of a chat is read again, from here back. */
const messagesRead = 100

/** The chat of a channel, followed. What is told while nobody listened is made up for, not guessed. */
export class FollowedChat {
  readonly transcript = new Transcript()
  readonly #parts: FollowedParts
  #after = 0

  private constructor(parts: FollowedParts) {
    this.#parts = parts
  }

  /** Up to date when it resolves. */
  static async open(parts: FollowedParts): Promise<FollowedChat> {
    const chat = new FollowedChat(parts)
    await chat.#reload()
    return chat
  }

  /** Everything that happens from now on: the item, and the message it changed. After a gap, every message anew. */
  async *follow(): AsyncGenerator<{ item?: FeedItem; message?: Message }, void, void> {
    const { runner, session } = this.#parts
    for (;;) {
      try {
        for await (const { seq, item } of runner.feed("session.feed", { id: session, after: this.#after })) {
          this.#after = seq
          const message = this.transcript.apply(item)
          yield { item, ...(message ? { message } : {}) }
        }
        return
      } catch (failure) {
        if (!(failure instanceof Fault) || failure.code !== "resync") throw failure
        await this.#reload()
        for (const message of this.transcript.messages.values()) yield { message }
        // Nothing happened of itself, but whoever waits for something has to look again.
        yield {}
      }
    }
  }

  async #reload(): Promise<void> {
    const { runner, session, channel } = this.#parts
    const agent = await runner.call("agent.get", { session })
    const chatId = agent.channels.find((one) => one.channel === channel)?.chatId
    const read =
      chatId === undefined ? [] : (await runner.call("chat.messages", { id: chatId, limit: messagesRead })).items
    this.transcript.load(agent, read)
    this.#after = agent.feedSeq
  }
}
