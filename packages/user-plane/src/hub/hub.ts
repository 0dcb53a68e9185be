import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { Provision } from "@warren/protocol/user-plane/provision.ts"
import type { Chats } from "../chat/chats.ts"
import type { SessionData } from "../sessions/session-record.ts"
import type { Places } from "./guest.ts"
import type { HubStore } from "./hub-store.ts"
import { announce } from "./agent-briefs.ts"
import type { ToolAnswerer } from "./tool-desk.ts"
import { SessionHub } from "./session-hub.ts"

export interface HubParts {
  readonly store: HubStore
  readonly chats: Chats
  readonly places: Places
  readonly clock: Clock
  readonly log: Log
  /** Something changed about a session's agent that a list of sessions shows. */
  changed?(session: string): void
  /** What an agent asks of Warren for its own session. */
  readonly tools?: ToolAnswerer | undefined
}

/** As much of an agent as a list of sessions shows. */
type AgentBrief = NonNullable<SessionData["agent"]>

/** The hubs of all sessions that have an agent. */
export class Hub implements AsyncDisposable {
  readonly #parts: HubParts
  readonly #sessions = new Map<string, SessionHub>()

  /** Goes on with what the last runner left. */
  constructor(parts: HubParts) {
    this.#parts = parts
    for (const { session } of parts.store.agents()) {
      if (parts.places.isGone(session)) parts.store.transaction(() => parts.store.deleteAgent(session))
      else this.#open(session)
    }
  }

  async start(session: string, spec: AgentSpec, wishes: Provision, signal: AbortSignal): Promise<SessionHub> {
    const { store, clock } = this.#parts
    // Only what is not there is written here: whether it is another agent than before is for its hub to see.
    if (!store.agent(session)) store.transaction(() => store.putAgent(session, spec, wishes, clock.now()))
    const hub = this.#sessions.get(session) ?? this.#open(session)
    await hub.start(spec, wishes, signal)
    return hub
  }

  /** An agent that is on paper already, as one that came with a fork. */
  adopt(session: string): void {
    if (!this.#sessions.has(session)) this.#open(session)
  }

  of(session: string): SessionHub {
    const hub = this.#sessions.get(session)
    if (!hub)
      throw new Fault("not_found", "the session has no agent", {
        hint: "start one first",
        subject: `session:${session}`,
      })
    return hub
  }

  brief(session: string): AgentBrief | undefined {
    const shown = this.#sessions.get(session)?.shown()
    return shown && { adapter: shown.adapter, status: shown.status, questions: shown.questions.length }
  }

  /** The session is gone. What was said stays. */
  async forget(session: string): Promise<void> {
    const hub = this.#sessions.get(session)
    if (!hub) return
    this.#sessions.delete(session)
    await hub[Symbol.asyncDispose]()
    this.#parts.store.transaction(() => this.#parts.store.deleteAgent(session))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((hub) => hub[Symbol.asyncDispose]()))
    this.#sessions.clear()
  }

  #open(session: string): SessionHub {
    const hub = new SessionHub({ ...this.#parts, session })
    this.#sessions.set(session, hub)
    void announce(hub, () => this.#parts.changed?.(session))
    this.#parts.changed?.(session)
    return hub
  }
}
