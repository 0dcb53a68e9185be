import type { Duplex } from "node:stream"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"

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

/** While it is held, the session is in use and its sandbox awake. */
export interface Stay extends Disposable {
  /** The supervisor that runs there already, if one does. */
  find(signal: AbortSignal): Promise<Guest | undefined>
  launch(spec: AgentSpec, token: string, signal: AbortSignal): Promise<Guest>
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
