import { isId } from "@warren/base/id.ts"

const bodyChars = 20

/** What a sandbox's id says: its session, and the key it was made with, in whose name everything in it is done. */
export interface SandboxRef {
  readonly session: string
  readonly key: string
}

/** Letters and digits only: it is part of a host name, behind a port and a dash. */
export function sandboxIdOf({ session, key }: SandboxRef): string {
  return session.slice("ses_".length) + key
}

export function refOf(sandboxId: string): SandboxRef | undefined {
  const ref = { session: `ses_${sandboxId.slice(0, bodyChars)}`, key: sandboxId.slice(bodyChars) }
  return isId("ses", ref.session) && isId("tok", `tok_${ref.key}`) ? ref : undefined
}
