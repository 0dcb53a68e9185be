import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Launch } from "../process-group.ts"
import { ProcessGroups } from "../process-groups.ts"
import { OpenCodeServer } from "./server.ts"

export interface KeeperLimits {
  /** So many ends in a row that nobody asked for: it is not started again by itself. */
  readonly crashesMax: number
  readonly backoff: { readonly baseMs: number; readonly capMs: number }
  /** Who has lived this long begins to count anew. */
  readonly healthyMs: number
}

export const keeperLimits: KeeperLimits = {
  crashesMax: 5,
  backoff: { baseMs: 2_000, capMs: 32_000 },
  healthyMs: 60_000,
}

/** Keeps one OpenCode running: started when it is first needed, and again when it dies, up to a limit. */
export class Keeper implements AsyncDisposable {
  readonly #clock: Clock
  readonly #limits: KeeperLimits
  readonly #groups = new ProcessGroups()
  readonly #over = new AbortController()
  #launch: Launch
  #server: Promise<OpenCodeServer> | undefined
  #current: OpenCodeServer | undefined
  #crashes = 0

  constructor(launch: Launch, clock: Clock, limits: KeeperLimits = keeperLimits) {
    this.#launch = launch
    this.#clock = clock
    this.#limits = limits
  }

  get launch(): Launch {
    return this.#launch
  }

  /** The one that runs. After too many crashes it is tried once for each who asks, and said what is wrong. */
  async running(signal: AbortSignal): Promise<OpenCodeServer> {
    signal.throwIfAborted()
    const server = (this.#server ??= this.#started(0))
    server.catch(() => undefined)
    return Promise.race([server, rejection(signal)])
  }

  /** Another configuration: whoever runs ends, and the next one has it. */
  async change(launch: Launch, signal: AbortSignal): Promise<void> {
    this.#launch = launch
    this.#crashes = 0
    await this.#end()
    await this.running(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new Fault("cancelled", "the agent was stopped"))
    await this.#end()
    await this.#groups[Symbol.asyncDispose]()
  }

  async #end(): Promise<void> {
    const starting = this.#server
    this.#server = this.#current = undefined
    await (await starting?.catch(() => undefined))?.[Symbol.asyncDispose]()
  }

  async #started(waitMs: number): Promise<OpenCodeServer> {
    for (let delayMs = waitMs; ; delayMs = this.#backoffMs) {
      if (delayMs > 0) await this.#clock.sleep(delayMs, this.#over.signal)
      try {
        return this.#watched(await OpenCodeServer.start(this.#groups, this.#launch, this.#over.signal))
      } catch (failure) {
        this.#crashes++
        if (this.#over.signal.aborted || this.#isFatal(failure)) throw this.#refusal(failure)
      }
    }
  }

  #watched(server: OpenCodeServer): OpenCodeServer {
    this.#current = server
    const since = this.#clock.monotonic()
    void server.ended.then(() => {
      if (this.#current !== server) return
      // What its tools run goes with it: nobody would ever hear of that again.
      this.#groups.sweep()
      this.#current = this.#server = undefined
      this.#crashes = this.#clock.monotonic() - since >= this.#limits.healthyMs ? 1 : this.#crashes + 1
      if (this.#crashes >= this.#limits.crashesMax || this.#over.signal.aborted) return
      this.#server = this.#started(this.#backoffMs)
      this.#server.catch(() => undefined)
    })
    return server
  }

  /** A program that is not there will not come by waiting. */
  #isFatal(failure: unknown): boolean {
    return this.#crashes >= this.#limits.crashesMax || Fault.from(failure).code === "not_found"
  }

  #refusal(failure: unknown): Fault {
    this.#server = undefined
    const { code } = Fault.from(failure)
    const often = this.#crashes > 1 ? ` (${this.#crashes} times in a row)` : ""
    return new Fault(code, `${messageOf(failure)}${often}`, { cause: failure })
  }

  get #backoffMs(): number {
    const { baseMs, capMs } = this.#limits.backoff
    return Math.min(capMs, baseMs * 2 ** Math.max(0, this.#crashes - 1))
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
}
