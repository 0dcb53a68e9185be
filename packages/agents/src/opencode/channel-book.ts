import { readFile } from "node:fs/promises"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import { z } from "zod"

const Conversation = z.object({
  session: z.string(),
  /** What was said by whom drives it, and what OpenCode calls it; the newest last. */
  messages: z.array(z.object({ messageId: z.string(), openCodeId: z.string() })),
})
type Conversation = z.output<typeof Conversation>
const Conversations = z.record(z.string(), Conversation)

const messagesMax = 1_000

/** Which of OpenCode's sessions belongs to which channel: written down, so that another process goes on with it. */
export class ChannelBook {
  readonly #path: string
  #known: Record<string, Conversation> | undefined

  constructor(path: string) {
    this.#path = path
  }

  async session(channel: string): Promise<string | undefined> {
    return (await this.#read())[channel]?.session
  }

  async begin(channel: string, session: string): Promise<void> {
    await this.#change((known) => void (known[channel] = { session, messages: [] }))
  }

  async forget(channel: string): Promise<void> {
    await this.#change((known) => void delete known[channel])
  }

  async note(channel: string, messageId: string, openCodeId: string): Promise<void> {
    await this.#change((known) => {
      const conversation = known[channel]
      if (conversation)
        conversation.messages = [...conversation.messages, { messageId, openCodeId }].slice(-messagesMax)
    })
  }

  /** The first of OpenCode's ids that came of a message; it and everything after it is not known any more. */
  async cut(channel: string, messageId: string): Promise<string | undefined> {
    const messages = (await this.#read())[channel]?.messages ?? []
    const at = messages.findIndex((one) => one.messageId === messageId)
    if (at < 0) return undefined
    await this.#change((known) => {
      const conversation = known[channel]
      if (conversation) conversation.messages = messages.slice(0, at)
    })
    return messages[at]?.openCodeId
  }

  async #change(work: (known: Record<string, Conversation>) => void): Promise<void> {
    const known = await this.#read()
    work(known)
    await writeFileAtomic(this.#path, JSON.stringify(known))
  }

  async #read(): Promise<Record<string, Conversation>> {
    this.#known ??= Conversations.safeParse(await readJson(this.#path)).data ?? {}
    return this.#known
  }
}

/** A book that is not there, or cannot be read, is empty: conversations begin anew. */
async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"))
  } catch {
    return undefined
  }
}
