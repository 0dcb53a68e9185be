import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { Flights } from "./flights.ts"
import type { Plane, Session } from "./plane.ts"
import { refOf, sandboxIdOf } from "./sandbox-id.ts"
import { labelsOf, metadataOf, settingsOf, type Settings } from "./settings.ts"

/** A session that was made here, with what makes it a sandbox. */
export interface Sandbox {
  readonly id: string
  readonly session: Session
  readonly settings: Settings
}

type State = Session["state"]
const pausedStates: ReadonlySet<State> = new Set(["paused", "hibernating", "hibernated"])
const goneStates: ReadonlySet<State> = new Set(["stopping", "stopped", "failed"])
export const thereStates: readonly State[] = [
  ...(["starting", "running", "restoring", "paused", "hibernating", "hibernated"] as const),
]

/** Longer than a session may live. */
const timeoutSMax = 365 * 24 * 3600 - 1
/** Of a sandbox that is woken by what comes for it. */
const wakeTimeoutS = 300

export function isPaused({ session }: Sandbox): boolean {
  return pausedStates.has(session.state)
}

/** The sandboxes of this door: sessions, found and changed in the name of whoever asks. */
export class Sandboxes {
  readonly flights = new Flights()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  shown(session: Session): Sandbox | undefined {
    const settings = settingsOf(session)
    if (!settings || goneStates.has(session.state)) return undefined
    return { id: sandboxIdOf({ session: session.id, key: settings.key }), session, settings }
  }

  async get(plane: Plane, id: string): Promise<Sandbox> {
    const found = await this.find(plane, id)
    if (!found) throw new Fault("not_found", `sandbox "${id}" doesn't exist or you don't have access to it`)
    return found
  }

  async find(plane: Plane, id: string): Promise<Sandbox | undefined> {
    const ref = refOf(id)
    if (!ref) return undefined
    const session = await plane.call("session.get", { id: ref.session }).catch(absent)
    const found = session && this.shown(session)
    return found?.id === id ? found : undefined
  }

  /** How long it lives when its time is `timeoutS` from now. */
  lifeOf({ createdAt }: Session, timeoutS: number): number {
    const age = Math.max(0, this.#clock.now() - Date.parse(createdAt))
    return Math.max(1_000, Math.ceil(age + Math.min(timeoutS, timeoutSMax) * 1000))
  }

  async setTimeout(plane: Plane, { session }: Sandbox, timeoutS: number): Promise<Session> {
    return plane.call("session.update", { id: session.id, lifeMs: this.lifeOf(session, timeoutS) })
  }

  /** More of its time, never less. */
  async extend(plane: Plane, sandbox: Sandbox, timeoutS: number): Promise<Session> {
    const { session } = sandbox
    const isMore = this.lifeOf(session, timeoutS) > (session.lifeMs ?? Infinity)
    return isMore ? this.setTimeout(plane, sandbox, timeoutS) : session
  }

  async change(plane: Plane, { session, settings }: Sandbox, changed: Partial<Settings>, more: object): Promise<void> {
    const labels = labelsOf({ ...settings, ...changed }, metadataOf(session))
    await plane.call("session.update", { id: session.id, labels, ...more })
  }

  async pause(plane: Plane, { session }: Sandbox, keepsMemory: boolean): Promise<void> {
    await plane.call(keepsMemory ? "session.pause" : "session.hibernate", { id: session.id })
    this.flights.cut(session.id, new Fault("unavailable", "the sandbox was paused"))
  }

  async kill(plane: Plane, { session }: Sandbox): Promise<void> {
    this.flights.cut(session.id, new Fault("unavailable", "the sandbox was killed"))
    await plane.call("session.delete", { id: session.id })
  }

  /** Awake, for so long. `reboots`: what was running is not wanted back. */
  async resume(plane: Plane, sandbox: Sandbox, timeoutS: number, reboots = false): Promise<Session> {
    const { id } = sandbox.session
    // First its time: one that has none left would be put to sleep again at once.
    await this.setTimeout(plane, sandbox, timeoutS)
    if (reboots && sandbox.session.state === "paused") await plane.call("session.hibernate", { id })
    const { state } = await plane.call("session.get", { id })
    if (state === "paused") return plane.call("session.resume", { id }).catch(() => plane.call("session.get", { id }))
    return state === "running" ? plane.call("session.get", { id }) : plane.call("session.restore", { id })
  }

  /** For what comes to it from outside: awake, or undefined when it may not be woken. */
  async reached(plane: Plane, sandbox: Sandbox): Promise<Sandbox | undefined> {
    if (!isPaused(sandbox)) return sandbox
    if (sandbox.settings.autoResume !== true || sandbox.session.state !== "paused") return undefined
    const session = await this.resume(plane, sandbox, Math.max(sandbox.settings.timeoutS, wakeTimeoutS))
    return { ...sandbox, session }
  }
}

function absent(thrown: unknown): undefined {
  if (thrown instanceof Fault && thrown.code === "not_found") return undefined
  throw thrown
}
