import type { State } from "./moves.ts"

/** What is observed of a session, without a clock: times are how long ago, or how long still. */
export interface Facts {
  readonly state: State
  /** Its sandbox has ended by itself. */
  readonly hasDied: boolean
  /** Something failed on its way to where it was asked to go. */
  readonly isUnfinished: boolean
  /** Commands, transfers, attached people, an agent's turn: something goes on right now. */
  readonly isBusy: boolean
  /** What was found inside when it was last looked at, after the last use. */
  readonly inside: "unknown" | "busy" | "quiet"
  readonly sinceUseMs: number
  readonly ageMs: number
  readonly awakeMs: number
  readonly ttlMs?: number | undefined
  readonly lifeMs?: number | undefined
  readonly lifeAction?: "stop" | "pause" | "hibernate" | undefined
  readonly idle?: { readonly afterMs: number; readonly action: "pause" | "hibernate" | "stop" } | undefined
  readonly snapshots?: { readonly everyMs: number; readonly sinceMs: number } | undefined
}

export type Action =
  | "finish"
  | "fail"
  | "expire"
  | "endLife"
  | "pauseLife"
  | "restLife"
  | "look"
  | "pause"
  | "hibernate"
  | "stop"
  | "snapshot"

/** What to do now: one thing, the most final first. A session that is on its way somewhere is left alone, unless it came to a halt. */
export function decide(facts: Facts): Action | undefined {
  const isAwake = facts.state === "running" || facts.state === "paused"
  if (isEnding(facts)) return facts.isUnfinished ? "finish" : undefined
  if (facts.hasDied) return isAwake ? "fail" : undefined
  if (!isAwake && facts.state !== "hibernated") return undefined
  const end = dueEnd(facts)
  if (end) return end
  if (facts.isBusy) return dueSnapshot(facts)
  if (facts.ttlMs !== undefined && facts.sinceUseMs >= facts.ttlMs) return "expire"
  return dueIdle(facts) ?? dueSnapshot(facts)
}

function isEnding({ state }: Facts): boolean {
  return state === "hibernating" || state === "stopping"
}

/** A life that ends in sleep ends once: one that sleeps already is left alone until it is given more of it. */
function dueEnd({ state, lifeMs, lifeAction = "stop", ageMs }: Facts): Action | undefined {
  if (lifeMs === undefined || ageMs < lifeMs) return undefined
  if (lifeAction === "stop") return "endLife"
  if (lifeAction === "pause") return state === "running" ? "pauseLife" : undefined
  return state === "hibernated" ? undefined : "restLife"
}

function dueIdle({ state, idle, sinceUseMs, awakeMs, inside }: Facts): Action | undefined {
  if (!idle || awakeMs > 0 || sinceUseMs < idle.afterMs) return undefined
  // A paused session does nothing; it goes further down only if that is what its policy says.
  if (state === "paused") return idle.action === "pause" ? undefined : idle.action
  if (state !== "running") return undefined
  if (inside === "unknown") return "look"
  return inside === "quiet" ? idle.action : undefined
}

function dueSnapshot({ state, snapshots }: Facts): Action | undefined {
  return state === "running" && snapshots && snapshots.sinceMs >= snapshots.everyMs ? "snapshot" : undefined
}

/** How long nothing can become due by the passing of time alone. */
export function quietMs(facts: Facts): number {
  const { ttlMs, lifeMs, idle, snapshots } = facts
  const times = [
    ttlMs === undefined || facts.isBusy ? Infinity : ttlMs - facts.sinceUseMs,
    lifeMs === undefined ? Infinity : lifeMs - facts.ageMs,
    idle && !facts.isBusy ? Math.max(idle.afterMs - facts.sinceUseMs, facts.awakeMs) : Infinity,
    snapshots ? snapshots.everyMs - snapshots.sinceMs : Infinity,
  ]
  return Math.min(...times.filter((ms) => ms > 0))
}
