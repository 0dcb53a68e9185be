import { Fault } from "@warren/base/fault.ts"
import { isFeed, isStream, type Context, type Contract, type Entry, type Handlers } from "@warren/protocol/contract.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"

type Handler = (input: unknown, context: Context) => unknown
type AnyConversation = Conversation<unknown, unknown>

/** Tells whether somebody has ended what a session ran in, since this was asked for. */
type Watch = (session: string) => () => boolean

/**
 * The same handlers. Whoever is in a session while somebody else ends what it runs in finds nobody there any more; they are told that,
 * and not that something is broken. What ends it names the session by `id` and waits for its turn.
 */
export function stoppedUnder<C extends Contract>(contract: C, handlers: Handlers<C>, watch: Watch): Handlers<C> {
  const entries = Object.entries(contract).map(([name, entry]) => {
    const handler = handlers[name] as Handler
    return [
      name,
      (input: unknown, context: Context) => {
        const { session } = input as { readonly session?: unknown }
        if (typeof session !== "string") return handler(input, context)
        return new Stay(session, watch(session)).answer(entry, () => handler(input, context))
      },
    ]
  })
  return Object.fromEntries(entries) as Handlers<C>
}

/** Of one caller, in one session. */
class Stay {
  readonly #session: string
  readonly #isOver: () => boolean

  constructor(session: string, isOver: () => boolean) {
    this.#session = session
    this.#isOver = isOver
  }

  answer(entry: Entry, ask: () => unknown): unknown {
    if (isFeed(entry)) return this.#feed(ask() as AsyncIterable<unknown>)
    if (isStream(entry)) return this.#told(async () => this.#talk((await ask()) as AnyConversation))
    return this.#told(async () => await ask())
  }

  async *#feed(items: AsyncIterable<unknown>): AsyncIterable<unknown> {
    try {
      yield* items
    } catch (thrown) {
      throw this.#truth(thrown)
    }
  }

  #talk(inner: AnyConversation): AnyConversation {
    return {
      next: () => this.#told(() => inner.next()),
      send: (message) => inner.send(message),
      write: (bytes) => this.#told(() => inner.write(bytes)),
      [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    }
  }

  async #told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (thrown) {
      throw this.#truth(thrown)
    }
  }

  #truth(thrown: unknown): unknown {
    if (Fault.from(thrown).code !== "unavailable" || !this.#isOver()) return thrown
    return new Fault("conflict", "the session was stopped meanwhile", {
      subject: `session:${this.#session}`,
      cause: thrown,
    })
  }
}
