import { Fault } from "@warren/base/fault.ts"
import type { SessionState } from "@warren/protocol/user-plane/session.ts"
import type { z } from "zod"

export type State = z.output<typeof SessionState>

/** Every legal move. What is not here cannot happen. */
export const moves = {
  ready: { from: ["starting", "restoring"], to: "running" },
  pause: { from: ["running"], to: "paused" },
  resume: { from: ["paused"], to: "running" },
  hibernate: { from: ["running", "paused"], to: "hibernating" },
  sleep: { from: ["hibernating"], to: "hibernated" },
  /** The sandbox is gone, the files are not: as if it had been put to sleep. */
  lose: { from: ["running", "paused", "hibernating", "restoring"], to: "hibernated" },
  restore: { from: ["hibernated", "stopped", "failed"], to: "restoring" },
  rollback: { from: ["running", "paused", "hibernated", "stopped", "failed"], to: "restoring" },
  stop: {
    from: ["starting", "running", "paused", "hibernating", "hibernated", "restoring", "failed"],
    to: "stopping",
  },
  end: { from: ["stopping"], to: "stopped" },
  /** It is deleted: from anywhere, also a second time, and nothing leads back. */
  leave: {
    from: [
      ...(["starting", "running", "paused", "hibernating", "hibernated", "restoring"] as const),
      ...(["stopping", "stopped", "failed"] as const),
    ],
    to: "stopping",
  },
  fail: { from: ["starting", "running", "paused", "restoring"], to: "failed" },
} as const satisfies Readonly<Record<string, { from: readonly State[]; to: State }>>

export type Move = keyof typeof moves

export function canMove(state: State, move: Move): boolean {
  return (moves[move].from as readonly State[]).includes(state)
}

type Moving = { readonly id: string; readonly state: State }

/** Where a move leads, or why it cannot be made. */
export function moved(session: Moving, move: Move): State {
  if (canMove(session.state, move)) return moves[move].to
  throw unfit(session, `cannot ${move} a session that is ${session.state}`)
}

/** That it is in no state for something, and what to do about it. */
export function unfit({ id, state }: Moving, message = `the session is ${state}`): Fault {
  return new Fault("conflict", message, { subject: `session:${id}`, hint: hints[state] })
}

const hints: Readonly<Partial<Record<State, string>>> = {
  stopped: "restore it first",
  failed: "restore it first",
  hibernated: "restore it, or use it: that wakes it",
  paused: "resume it first",
  stopping: "it is on its way: ask again in a moment",
  hibernating: "it is on its way: ask again in a moment",
}
