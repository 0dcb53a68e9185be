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

/** Where a move leads, or why it cannot be made. */
export function moved(session: { readonly id: string; readonly state: State }, move: Move): State {
  if (canMove(session.state, move)) return moves[move].to
  throw new Fault("conflict", `cannot ${move} a session that is ${session.state}`, {
    subject: `session:${session.id}`,
    hint: hints[session.state],
  })
}

const hints: Readonly<Partial<Record<State, string>>> = {
  stopped: "start it again with session.restore",
  failed: "start it again with session.restore",
  hibernated: "wake it with session.restore, or by using it",
  paused: "resume it first",
  stopping: "it is on its way: ask again in a moment",
  hibernating: "it is on its way: ask again in a moment",
}
