import { Fault } from "@warren/base/fault.ts"
import type { Received } from "@warren/protocol/contract.ts"
import { toolLimits, type AgentTools, type Relative } from "@warren/protocol/hub/tools.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { Hub } from "../hub/hub.ts"
import type { HubStore } from "../hub/hub-store.ts"
import type { SessionRecord } from "../sessions/session-record.ts"
import type { Sessions } from "../sessions/sessions.ts"
import type { Family } from "./family.ts"

export interface ChildrenParts {
  readonly sessions: Sessions
  readonly hub: Hub
  readonly store: HubStore
  readonly family: Family
}

type Spawn = Received<AgentTools, "spawn_session">

/** States in which a session costs nothing any more. */
const over: ReadonlySet<string> = new Set(["stopped", "failed"])

/** The sessions that sessions start: like their parents, and never more than those. */
export class Children {
  readonly #parts: ChildrenParts
  readonly #beginning = new Map<string, number>()

  constructor(parts: ChildrenParts) {
    this.#parts = parts
  }

  /** One that this session has started, by id or name; any other is not known here. */
  own(parent: string, which: string): string {
    const { sessions, family } = this.#parts
    const found = family.children(parent).find(({ child }) => child === which || nameOf(sessions, child) === which)
    if (found) return found.child
    throw new Fault("not_found", `this session has started no session "${which}"`, { hint: "list_sessions" })
  }

  list(parent: string): Relative[] {
    const { family } = this.#parts
    return family.children(parent).flatMap(({ child }) => this.about(child) ?? [])
  }

  about(session: string): Relative | undefined {
    const { sessions, hub, store, family } = this.#parts
    try {
      const { name, state } = sessions.get(session)
      const status = hub.brief(session)?.status
      return {
        ...{ session, name, state, waiting: store.openPrompts(session).length },
        ...(status === undefined ? {} : { status }),
        isComplete: family.of(session)?.isComplete ?? false,
      }
    } catch (failure) {
      if (Fault.from(failure).code === "not_found") return undefined
      throw failure
    }
  }

  async spawn(parent: string, asked: Spawn, signal: AbortSignal): Promise<{ session: string; name: string }> {
    this.#begin(parent)
    try {
      return await this.#spawn(parent, asked, signal)
    } finally {
      this.#beginning.set(parent, (this.#beginning.get(parent) ?? 1) - 1)
    }
  }

  /** With everything it has started, the youngest first. */
  async end(session: string): Promise<void> {
    const { sessions, family } = this.#parts
    for (const { child } of family.children(session)) await this.end(child)
    await sessions.delete(session).catch((failure: unknown) => {
      if (Fault.from(failure).code !== "not_found") throw failure
    })
    family.forget(session)
  }

  /** Counted before anything is made, so that many at once are not more than may be. */
  #begin(parent: string): void {
    const living = this.list(parent).filter(({ state }) => !over.has(state)).length
    const beginning = this.#beginning.get(parent) ?? 0
    if (living + beginning >= toolLimits.childrenMax)
      throw new Fault("limit", `this session has started ${toolLimits.childrenMax} sessions already`, {
        hint: "terminate_session",
      })
    if ((this.#parts.family.of(parent)?.depth ?? 0) >= toolLimits.depthMax)
      throw new Fault("limit", `sessions start sessions only ${toolLimits.depthMax} deep`)
    this.#beginning.set(parent, beginning + 1)
  }

  async #spawn(parent: string, asked: Spawn, signal: AbortSignal): Promise<{ session: string; name: string }> {
    const { sessions, hub, store, family } = this.#parts
    const agent = store.agent(parent)
    if (!agent) throw new Fault("not_found", "this session has no agent")
    const made = await sessions.create(wishesLike(sessions.record(parent), asked), signal)
    try {
      family.add(parent, made.id)
      const { identity, persona, instructions } = agent.wishes
      const same = Object.fromEntries(
        Object.entries({ identity, persona, instructions }).filter(([, value]) => value !== undefined),
      )
      const { repo, branch, ref } = asked
      const own = Object.fromEntries(Object.entries({ repo, branch, ref }).filter(([, value]) => value !== undefined))
      const child = await hub.start(made.id, agent.spec, { ...same, ...own }, signal)
      child.prompt({ text: asked.task, channel: `session:${parent}`, mode: "followup", wishes: {} })
      return { session: made.id, name: made.name }
    } catch (failure) {
      await this.end(made.id)
      throw failure
    }
  }
}

/** What its parent is, and nothing that it is not. */
function wishesLike(parent: SessionRecord, { name, shareWorkspace }: Spawn) {
  const { plan, reach, env, secrets, keys, ttlMs, lifeMs } = parent
  if (shareWorkspace && plan.workspace === undefined)
    throw new Fault("conflict", "this session has no workspace to share")
  return sessionCalls["session.create"].in.parse({
    ...{ driver: plan.driver, image: parent.image, profile: plan.profile, limits: plan.limits },
    network: plan.network === "proxy" ? { mode: "proxy", ...reach, allow: [...reach.allow] } : { mode: plan.network },
    ...{ env, secrets: [...secrets], keys, labels: { parent: parent.id } },
    ...(name === undefined ? {} : { name }),
    ...(shareWorkspace ? { workspace: plan.workspace } : {}),
    ...(ttlMs === undefined ? {} : { ttlMs }),
    ...(lifeMs === undefined ? {} : { lifeMs }),
  })
}

function nameOf(sessions: Sessions, id: string): string | undefined {
  try {
    return sessions.get(id).name
  } catch {
    return undefined
  }
}
