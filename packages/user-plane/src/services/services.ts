import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { ServiceName, type Service } from "@warren/protocol/user-plane/services.ts"
import { labelOf } from "../gateway/address.ts"
import type { EnvironmentOf } from "../processes/handlers.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Use } from "../sessions/use.ts"
import { Cdp } from "./browser/cdp.ts"
import { browserLimits } from "./limits.ts"
import { KeptService } from "./kept-service.ts"
import { recipes } from "./recipes.ts"

interface ServicesParts {
  readonly sessions: Sessions
  readonly environmentOf: EnvironmentOf
  readonly clock: Clock
  readonly log: Log
}

/** The services of all sessions. They end with their sandbox, and with the runner: what is wanted again is started again. */
export class Services implements AsyncDisposable {
  readonly #parts: ServicesParts
  /** By `session name`, the one used last at the end. */
  readonly #kept = new Map<string, KeptService>()

  constructor(parts: ServicesParts) {
    this.#parts = parts
  }

  /** One that can be reached, started when it does not run. Its session is awake, and used until the use is over. */
  async ensure(use: Use, name: ServiceName, signal: AbortSignal): Promise<KeptService> {
    if (name === "browser") this.#parts.sessions.requireUsual(use, "browserTools")
    const kept = this.#of(use, name)
    await kept.ready(signal)
    return kept
  }

  async start(session: string, name: ServiceName, signal: AbortSignal): Promise<Service> {
    using use = await this.#parts.sessions.use(session, signal)
    return this.#shown(use.record.id, name, await this.ensure(use, name, signal))
  }

  list(session: string): Service[] {
    const { id } = this.#parts.sessions.record(session)
    return ServiceName.options.map((name) => this.#shown(id, name, this.#kept.get(keyOf(id, name))))
  }

  async stop(session: string, name: ServiceName): Promise<boolean> {
    const { id } = this.#parts.sessions.record(session)
    const kept = this.#kept.get(keyOf(id, name))
    if (!kept) return false
    const wasRunning = kept.state !== "failed"
    this.#kept.delete(keyOf(id, name))
    await kept.stop()
    return wasRunning
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#kept.values()].map((kept) => kept.stop()))
  }

  #of(use: Use, name: ServiceName): KeptService {
    const key = keyOf(use.record.id, name)
    const known = this.#kept.get(key)
    // Last again: what makes room for another is what nobody uses.
    this.#kept.delete(key)
    const isGood = known && known.sandbox === use.live.sandbox
    const kept = isGood ? known : this.#made(use, name)
    this.#kept.set(key, kept)
    return kept
  }

  #made(use: Use, name: ServiceName): KeptService {
    if (name === "browser") this.#makeRoom()
    const { environmentOf, clock, log } = this.#parts
    const { id: session } = use.record
    const { sandbox } = use.live
    const line = name === "browser" ? (write: (bytes: Buffer) => void) => new Cdp(write, clock) : undefined
    const env = environmentOf(use, {})
    const kept = new KeptService({ session, name, recipe: recipes[name], sandbox, env, line, clock, log })
    void this.#forgetWith(sandbox, keyOf(session, name), kept)
    return kept
  }

  async #forgetWith(sandbox: Sandbox, key: string, kept: KeptService): Promise<void> {
    await sandbox.ended.catch(() => undefined)
    if (this.#kept.get(key) === kept) this.#kept.delete(key)
  }

  /** A browser is large: the one nobody has used for longest goes. */
  #makeRoom(): void {
    const browsers = [...this.#kept].filter(([key]) => key.endsWith(" browser"))
    if (browsers.length < browserLimits.browsersMax) return
    const idle = browsers.find(([, { line }]) => !(line instanceof Cdp) || line.pages === 0)
    if (!idle) {
      throw new Fault("limit", `${browserLimits.browsersMax} browsers are at work`, { hint: "try again in a moment" })
    }
    this.#kept.delete(idle[0])
    void idle[1].stop()
  }

  #shown(session: string, name: ServiceName, kept: KeptService | undefined): Service {
    const { target } = recipes[name]
    const place = target === undefined ? {} : { path: `/s/${session}/${target}/`, label: labelOf(session, target) }
    const report = kept?.report() ?? { session, name, state: "stopped" as const, restarts: 0 }
    return { ...report, ...place }
  }
}

function keyOf(session: string, name: ServiceName): string {
  return `${session} ${name}`
}
