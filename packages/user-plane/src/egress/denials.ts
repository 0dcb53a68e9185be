import { Fault } from "@warren/base/fault.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import type { Numbered } from "@warren/protocol/contract.ts"
import { Journal } from "@warren/protocol/journal.ts"
import { denialReasons, type DenialReason } from "./denied.ts"

/** One refusal, as it is read in the feed. */
export interface Denial {
  readonly time: string
  readonly reason: DenialReason
  readonly host: string
  readonly port: number
  readonly message: string
  readonly hint: string
  /** How often this host and port were refused for this reason, this time included. */
  readonly count: number
}

const journalMax = 1_000
const kindsMax = 1_000

/** What a sandbox was refused: each time in a feed, and each kind once with its count. Both are bounded. */
export class Denials {
  readonly journal: Journal<Denial>
  /** Kinds by key, the one refused longest ago first. */
  readonly #kinds = new Map<string, Denial>()
  readonly #now: () => number
  #total = 0

  constructor(now: () => number) {
    this.#now = now
    this.journal = new Journal(journalMax, now() * 1_000)
  }

  get total(): number {
    return this.#total
  }

  add(reason: DenialReason, where: { name: string; port: number }, message: string): void {
    this.#total++
    const key = `${reason} ${where.name} ${where.port}`
    const count = (this.#kinds.get(key)?.count ?? 0) + 1
    const time = new Date(this.#now()).toISOString()
    const { hint } = denialReasons[reason]
    const denial = { time, reason, host: where.name, port: where.port, message, hint, count }
    keepNewest(this.#kinds, kindsMax, key, denial)
    this.journal.append(denial)
  }

  /** Everything after that number (0: everything kept), at once: for who does not follow the feed. `resync` where some are no longer kept. */
  since(after: number): Numbered<Denial>[] {
    const kept = this.journal.tail(journalMax * 2)
    const first = kept[0]?.seq ?? this.journal.last + 1
    if (after !== 0 && (after < first - 1 || after > this.journal.last)) {
      throw new Fault("resync", `refusals after ${after} are not kept`, { hint: "ask for those after 0" })
    }
    return kept.filter(({ seq }) => seq > after)
  }

  /** The newest of each kind, the latest first. */
  list(): Denial[] {
    return [...this.#kinds.values()].toReversed()
  }
}
