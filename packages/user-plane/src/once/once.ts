import { createHash } from "node:crypto"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { isCall, type Context, type Contract, type Handlers } from "@warren/protocol/contract.ts"
import type { MadeStore } from "./made.ts"

type Handler = (input: unknown, context: Context) => Promise<unknown>

interface Running {
  readonly asked: string
  /** Resolves when it is over, whatever came of it. */
  readonly over: Promise<void>
}

/** The same handlers; what makes something makes it once for each key its caller gives. */
export function onceEach<C extends Contract>(contract: C, handlers: Handlers<C>, store: MadeStore): Handlers<C> {
  const once = new Once(store)
  const entries = Object.entries(contract).map(([name, entry]) => {
    const handler = handlers[name] as Handler
    if (!isCall(entry) || !entry.makes) return [name, handler]
    return [name, (input: unknown, context: Context) => once.do(name, input, context, handler)]
  })
  return Object.fromEntries(entries) as Handlers<C>
}

class Once {
  readonly #store: MadeStore
  readonly #running = new Map<string, Running>()

  constructor(store: MadeStore) {
    this.#store = store
  }

  async do(name: string, input: unknown, context: Context, handler: Handler): Promise<unknown> {
    const { key, caller } = context
    if (key === undefined) return handler(input, context)
    const asked = createHash("sha256")
      .update(JSON.stringify([name, input]))
      .digest("hex")
    const id = JSON.stringify([caller.name, key])
    // The one before may be on its way out because its caller went away: then this one does it.
    for (let other = this.#running.get(id); other; other = this.#running.get(id)) {
      same(other.asked, asked)
      await other.over
      context.signal.throwIfAborted()
    }
    const kept = this.#store.get(caller.name, key)
    if (kept) {
      same(kept.asked, asked)
      return JSON.parse(kept.answer)
    }
    return this.#first(id, asked, async () => {
      const answer = await handler(input, context)
      failpoint("once/done")
      this.#store.put(caller.name, key, { asked, answer: JSON.stringify(answer) })
      failpoint("once/kept")
      return answer
    })
  }

  #first(id: string, asked: string, work: () => Promise<unknown>): Promise<unknown> {
    const done = work().finally(() => this.#running.delete(id))
    const over = done.then(
      () => undefined,
      () => undefined,
    )
    this.#running.set(id, { asked, over })
    return done
  }
}

function same(before: string, now: string): void {
  if (before === now) return
  throw new Fault("conflict", "this key was used for another request", { hint: "use a new Idempotency-Key" })
}
