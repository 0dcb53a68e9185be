import type { TokenScope } from "@warren/protocol/token-scope.ts"

/** What of its owner's that is no session's a session can be given, by the field that asks for it. */
const fields: Readonly<Record<string, TokenScope>> = {
  workspace: "workspaces:write",
  secrets: "secrets:read",
  keys: "secrets:read",
}

/**
 * The scopes it takes to give a session all that an input asks for. Who may run programs in a session reads whatever it has:
 * a token that was made to see only some sessions would otherwise reach everything of its owner's through one of them.
 */
export function borrowed(call: string, input: unknown): TokenScope[] {
  if (!call.startsWith("session.") || typeof input !== "object" || input === null) return []
  return Object.entries(input).flatMap(([name, value]) => {
    const isAsked = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null
    const scope = Object.hasOwn(fields, name) ? fields[name] : undefined
    return isAsked && scope !== undefined ? [scope] : []
  })
}
