import type { Clock } from "@warren/base/clock.ts"
import { messageOf } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import type { Log } from "@warren/base/log.ts"
import type { Store } from "../store/store.ts"

const knownMax = 50_000
/** After so many new ones it is looked whether somebody has too many. */
const trimAfter = 1_000

/** Whose sessions are, learned from what runners answer to their users. Written down together, a moment later. */
export class Ownership implements AsyncDisposable {
  readonly #store: Pick<Store, "sessionOwners" | "users">
  readonly #clock: Clock
  readonly #log: Log
  /** Looked at with every answer: what is in it was said before. */
  readonly #noted = new Set<string>()
  readonly #known = new Map<string, string>()
  #pending = new Map<string, string>()
  #writing: Promise<void> | undefined
  #untrimmed = 0

  constructor(store: Pick<Store, "sessionOwners" | "users">, clock: Clock, log: Log) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /** What a runner answered to its user, if sessions are in it. */
  learn(call: string, user: string, answer: unknown): void {
    for (const session of sessionsIn(call, answer)) this.#note(session, user)
  }

  /** The id of the user. Where nobody has said, and there is only one user, it is theirs. */
  async of(session: string): Promise<string | undefined> {
    const known = this.#known.get(session)
    if (known !== undefined) return known
    await this.#written()
    const found = await this.#store.sessionOwners.of(session)
    if (found === undefined) return this.#only()
    keepNewest(this.#known, knownMax, session, found)
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#written()
  }

  async #only(): Promise<string | undefined> {
    const [first, ...others] = await this.#store.users.list("", 2)
    return others.length === 0 ? first?.id : undefined
  }

  #note(session: string, user: string): void {
    const key = `${session} ${user}`
    if (this.#noted.has(key)) return
    if (this.#noted.size >= knownMax) this.#noted.clear()
    this.#noted.add(key)
    // The first who says so has it, also among those not written yet.
    if (!this.#pending.has(session)) this.#pending.set(session, user)
    this.#writing ??= Promise.resolve().then(() => this.#write())
  }

  async #written(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  async #write(): Promise<void> {
    try {
      while (this.#pending.size > 0) {
        const owners = this.#pending
        this.#pending = new Map()
        await this.#store.sessionOwners.note(owners, this.#clock.now())
        this.#untrimmed += owners.size
        if (this.#untrimmed < trimAfter) continue
        this.#untrimmed = 0
        await this.#store.sessionOwners.trim(new Set(owners.values()))
      }
    } catch (thrown) {
      // Said again with the next answer; until then a token says whose it is.
      this.#noted.clear()
      this.#log("warn", "gateway.owners", { message: messageOf(thrown) })
    } finally {
      this.#writing = undefined
    }
  }
}

function* sessionsIn(call: string, answer: unknown): Generator<string> {
  if (!call.startsWith("session.") || typeof answer !== "object" || answer === null) return
  const { id, session, items, sessions } = answer as Record<string, unknown>
  const many = [answer, session, ...listOf(items), ...listOf(sessions)]
  for (const one of many) {
    const found = one === answer ? id : (one as { id?: unknown } | undefined)?.id
    if (isId("ses", found)) yield found
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
