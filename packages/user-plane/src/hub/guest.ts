import type { Duplex } from "node:stream"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { Provisioned } from "@warren/protocol/user-plane/provision.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { Workbench } from "../git/workbench.ts"

/** A supervisor that runs somewhere. */
export interface Guest {
  /** Resolves when its process is gone, with why, as a turn's cause. */
  readonly ended: Promise<TurnCause>
  /** What it said last about what went wrong. */
  readonly complaint: string
  /** A new connection to it, by which it comes to the hub. */
  connect(signal: AbortSignal): Promise<Duplex>
  /** It and everything it has started, at once. Resolves when it is gone. */
  kill(): Promise<void>
  /** Lets go of it; it goes on. */
  leave(): Promise<void>
}

/** What a supervisor is started with. */
export interface GuestStart {
  readonly spec: AgentSpec
  readonly token: string
  readonly provisioned: Provisioned
}

/** While it is held, the session is in use and its sandbox awake. */
export interface Stay extends Disposable {
  /** The supervisor that runs there already, if one does. */
  find(signal: AbortSignal): Promise<Guest | undefined>
  launch(start: GuestStart, signal: AbortSignal): Promise<Guest>
  /** Where things are made ready for it. */
  readonly bench: Workbench
}

/** Where supervisors run: in the sandboxes of sessions. */
export interface Places {
  /** Wakes the session. Refused when it is over. */
  stay(session: string, signal: AbortSignal): Promise<Stay>
  /** There is no such session any more. */
  isGone(session: string): boolean
  /** Whether it runs without being woken. */
  isAwake(session: string): boolean
  /** Frozen: nothing of it can answer, and nothing is wrong with that. */
  isPaused(session: string): boolean
}
