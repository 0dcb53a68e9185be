import type { Clock } from "@warren/base/clock.ts"
import { Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import type { Log } from "@warren/base/log.ts"
import type { Grant } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"
import { NobodyListens, statusOf } from "./refusal.ts"

/** What is written down for the user to read. */
export interface GatewayNote {
  readonly user: string
  readonly call: "gateway.open" | "gateway.request"
  readonly session?: string
  readonly result: string
  readonly reason?: string
}

export interface NotesOptions {
  readonly access: { add(note: GatewayNote): void; refuse(note: GatewayNote): void }
  readonly clock: Clock
  readonly log: Log
}

/** Who was let in and what was refused. Neither paths nor tokens are in it. */
export class Notes {
  readonly #options: NotesOptions
  /** When somebody was last noted for something. */
  readonly #noted = new Map<string, number>()

  constructor(options: NotesOptions) {
    this.#options = options
  }

  /** Somebody came with a token. A program brings one with each request, and is noted once in a while. */
  opened({ user, session, target }: Grant): void {
    const key = `${user} ${session} ${target}`
    const now = this.#options.clock.monotonic()
    const last = this.#noted.get(key)
    if (last !== undefined && now - last < gatewayLimits.noteAgainMs) return
    this.#options.access.add({ user, call: "gateway.open", session, result: "ok" })
    keepNewest(this.#noted, gatewayLimits.notedMax, key, now)
  }

  /** What may be told of what went wrong, and whether it was a refusal; the rest is written down. */
  failed(thrown: unknown, grant: Grant | undefined): { readonly fault: Fault; readonly isRefused: boolean } {
    const fault = Fault.from(thrown)
    const session = grant?.session
    if (fault.code === "internal")
      this.#options.log("error", "gateway.request", { session, message: messageOf(thrown) })
    if (isCancellation(fault) || fault instanceof NobodyListens || statusOf(fault) >= 500)
      return { fault, isRefused: false }
    const about = session === undefined ? {} : { session }
    this.refused({ user: grant?.user ?? "", ...about, result: fault.code, reason: fault.message })
    return { fault, isRefused: true }
  }

  /** It is refused whether or not that can be written down. */
  refused(note: Omit<GatewayNote, "call">): void {
    try {
      this.#options.access.refuse({ ...note, call: "gateway.request" })
    } catch (thrown) {
      this.#options.log("error", "access.lost", { message: messageOf(thrown) })
    }
  }
}
