import { randomBytes } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { retry } from "@warren/base/retry.ts"
import type { Bell } from "./bell.ts"
import type { Stay } from "./guest.ts"
import type { GuestLine } from "./guest-line.ts"
import type { HubStore } from "./hub-store.ts"
import { sessionHubLimits as limits } from "./limits.ts"
import { provision } from "./provision/provisioner.ts"
import type { Teller } from "./teller.ts"

export interface JoiningParts {
  readonly session: string
  readonly store: HubStore
  readonly clock: Clock
  readonly line: GuestLine
  readonly bell: Bell
  readonly teller: Teller
  /** The runner goes. */
  readonly over: AbortSignal
}

/** From a session with an agent on paper to one with whom a turn can begin, and back. */
export class Joining {
  readonly #parts: JoiningParts
  #joining: Promise<void> | undefined
  #provisioning: { readonly work: Promise<void>; readonly signal: AbortSignal } | undefined

  constructor(parts: JoiningParts) {
    this.#parts = parts
  }

  /** A supervisor that dies at once is given another chance. What was to be there first is. */
  async insist(stay: Stay, signal: AbortSignal): Promise<void> {
    await this.provision(stay, signal)
    const { clock } = this.#parts
    await retry(() => this.join(stay, signal), { triesMax: limits.triesMax, ...limits.reconnect, signal, clock })
  }

  /** What the agent wishes to find is there. Tried again by the next who needs it when it failed. */
  async provision(stay: Stay, signal: AbortSignal): Promise<void> {
    const { store, session } = this.#parts
    while (store.agent(session)?.provisioned === undefined) {
      const work = (): Promise<void> => this.#provision(stay, signal).finally(() => (this.#provisioning = undefined))
      const current = (this.#provisioning ??= { work: work(), signal })
      try {
        await current.work
      } catch (failure) {
        signal.throwIfAborted()
        // Whoever had begun did not want it any more; who asks here does.
        if (!current.signal.aborted) throw failure
      }
    }
  }

  /** There is a supervisor, and it is connected. */
  join(stay: Stay, signal: AbortSignal): Promise<void> {
    this.#joining ??= this.#joined(stay, signal).finally(() => (this.#joining = undefined))
    return this.#joining
  }

  /** Asks the supervisor to go, and sees to it. */
  async dismiss(): Promise<void> {
    const { store, session, clock, line, bell, over } = this.#parts
    const { guest } = line
    if (!guest) return
    store.transaction(() => void store.memory(session).push({ type: "stop" }))
    line.flush()
    const patience = new AbortController()
    const late = clock.sleep(limits.stopMs, AbortSignal.any([patience.signal, over])).catch(() => undefined)
    await Promise.race([guest.ended, late])
    patience.abort()
    await guest.kill()
    await bell.until(() => line.guest !== guest, over)
  }

  async #provision(stay: Stay, signal: AbortSignal): Promise<void> {
    const { store, session, teller } = this.#parts
    const agent = store.agent(session)
    if (!agent) throw new Fault("not_found", "the session has no agent")
    try {
      const tell = teller.tell.bind(teller)
      const found = await provision(agent.wishes, stay.bench, (step) => tell([{ type: "provision", ...step }]), signal)
      failpoint("agent/provisioned")
      store.transaction(() => store.setProvisioned(session, agent.wishes, found))
    } catch (failure) {
      if (!signal.aborted) teller.show("error", messageOf(failure))
      throw failure
    }
  }

  async #joined(stay: Stay, signal: AbortSignal): Promise<void> {
    const { line, bell } = this.#parts
    if (line.isTogether) return
    const found = line.guest ?? (await stay.find(signal))
    // Nothing is started for who does not want it any more, or for a runner that goes.
    signal.throwIfAborted()
    if (!line.guest && found) line.follow(found)
    if (!found) await this.#launch(stay, signal)
    const patience = AbortSignal.any([signal, AbortSignal.timeout(limits.connectMs)])
    const followed = line.guest
    await bell.until(() => line.isTogether || !line.guest, patience)
    if (line.isTogether) return
    const { guest } = line
    await guest?.kill()
    signal.throwIfAborted()
    const what = guest ? "the supervisor did not connect" : "the supervisor ended as soon as it was started"
    throw new Fault("unavailable", `${what}${followed?.complaint ? `: ${followed.complaint}` : ""}`)
  }

  async #launch(stay: Stay, signal: AbortSignal): Promise<void> {
    const { store, session, line } = this.#parts
    const token = randomBytes(24).toString("base64url")
    store.transaction(() => {
      store.setToken(session, token)
      store.beginLink(session, undefined)
    })
    failpoint("agent/tokened")
    const { spec, provisioned } = store.agent(session) ?? {}
    if (!spec || !provisioned) throw new Fault("not_found", "the session has no agent")
    line.follow(await stay.launch({ spec, token, provisioned }, signal))
    failpoint("agent/launched")
  }
}
