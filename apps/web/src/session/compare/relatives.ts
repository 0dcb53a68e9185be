import type { SessionInfo } from "@warren/sdk/session.ts"

export interface Relative {
  readonly session: SessionInfo
  /** How they belong together; undefined of any other session. */
  readonly kin: "its parent" | "a fork of it" | "forked from the same" | undefined
}

const order = ["a fork of it", "forked from the same", "its parent", undefined] as const

/** Whom a session can be compared with, those it has most in common with first. */
export function relativesOf(session: SessionInfo, all: readonly SessionInfo[]): Relative[] {
  const others = all.filter(({ id }) => id !== session.id)
  const told = others.map((one) => ({ session: one, kin: kinOf(session, one) }))
  return told.toSorted((a, b) => order.indexOf(a.kin) - order.indexOf(b.kin))
}

function kinOf(session: SessionInfo, other: SessionInfo): Relative["kin"] {
  if (other.parent === session.id) return "a fork of it"
  if (session.parent === other.id) return "its parent"
  return session.parent !== undefined && session.parent === other.parent ? "forked from the same" : undefined
}
