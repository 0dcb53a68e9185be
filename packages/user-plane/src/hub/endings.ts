import type { Clock } from "@warren/base/clock.ts"
import type { Control } from "@warren/protocol/hub/frames.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { Bell } from "./bell.ts"
import type { GuestLine } from "./guest-line.ts"
import type { HubStore } from "./hub-store.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import { shownPrompt, type PromptRecord } from "./prompt.ts"
import type { Teller } from "./teller.ts"
import type { TurnBook, TurnEnding } from "./turn-book.ts"

export const canceled: TurnEnding = { reason: "canceled", cause: "cancelled" }
const losses: Readonly<Partial<Record<TurnCause, string>>> = {
  oom: "the agent needed more memory than its session has",
  cancelled: "its session was stopped",
}

export interface EndingsParts {
  readonly session: string
  readonly store: HubStore
  readonly clock: Clock
  readonly book: TurnBook
  readonly teller: Teller
  readonly bell: Bell
  readonly over: AbortSignal
}

/** Sees to it that every prompt ends, once, with the reason why. */
export class Endings {
  /** Prompts that somebody wants ended. */
  readonly unwanted = new Set<string>()
  readonly #parts: EndingsParts
  #missing = 0

  constructor(parts: EndingsParts) {
    this.#parts = parts
  }

  end(id: string, ending: TurnEnding): void {
    this.#parts.teller.tell(this.#parts.book.end(id, ending))
  }

  stateOf(id: string): PromptRecord["state"] {
    return this.#parts.store.prompt(this.#parts.session, id)?.state ?? "done"
  }

  /** The supervisor that had it is no more. What it had not taken is tried again, what it had ends. */
  abandon(cause: TurnCause): void {
    const { store, session, bell } = this.#parts
    const sent = store.openPrompts(session).filter(({ state }) => state === "sent")
    for (const { id, tries } of sent) {
      if (this.unwanted.has(id)) this.end(id, canceled)
      else if (store.isInOutbox(session, id) && tries < limits.triesMax) this.#requeue(id)
      else this.end(id, { reason: "lost", cause, error: losses[cause] ?? "what drove the agent died" })
    }
    bell.ring()
  }

  /** Process truth: a turn that should be there and is not, twice, has been lost. */
  heard(frame: Control): void {
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
      this.end(id, { reason: "lost", cause: "orphaned", error: "the supervisor knows nothing of it" })
  }

  /** Whoever does not heed an abort is ended. */
  async insist(id: string, line: GuestLine): Promise<void> {
    const { clock, over } = this.#parts
    await clock.sleep(limits.abortMs, over).catch(() => undefined)
    if (!over.aborted && this.stateOf(id) === "sent") await line.guest?.kill()
  }

  #requeue(id: string): void {
    const { store, session, teller } = this.#parts
    const prompt = store.transaction(() => {
      store.beginLink(session, undefined)
      return shownPrompt(store.move(session, id, "requeue"))
    })
    teller.tell([{ type: "prompt", prompt }])
  }
}
