import type { Clock } from "@warren/base/clock.ts"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Store } from "../store/store.ts"

/** How exactly it is known when something was last used. */
const exactMs = 60_000
const writeMs = 10_000
const keptMax = 10_000

/** When tokens and sign-ins were last used, written now and then: not every request is worth a write. */
export class LastUse implements AsyncDisposable {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Log
  readonly #times = { token: new Map<string, number>(), "sign-in": new Map<string, number>() }
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, clock: Clock, log: Log) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#timer = setInterval(() => void this.write(), writeMs)
    this.#timer.unref()
  }

  note(kind: "token" | "sign-in", id: string, known: number | undefined): void {
    const now = this.#clock.now()
    if (known !== undefined && Math.abs(now - known) < exactMs) return
    if (this.#times[kind].size < keptMax) this.#times[kind].set(id, now)
  }

  async write(): Promise<void> {
    const { token, "sign-in": signIn } = this.#times
    const [tokens, signIns] = [new Map(token), new Map(signIn)]
    token.clear()
    signIn.clear()
    try {
      if (tokens.size > 0) await this.#store.tokens.used(tokens)
      if (signIns.size > 0) await this.#store.signIns.used(signIns)
    } catch (thrown) {
      this.#log("warn", "last-use.lost", { message: messageOf(thrown) })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.write()
  }
}
