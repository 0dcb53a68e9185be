import { createHash } from "node:crypto"

const nameCharsMax = 63
const digestChars = 8

/**
 * The workspace of a valet session. The ids of orchestrators end with what changes at each restart: their workspace does not.
 * An id that is not a name as it is becomes one, with a digest, so that no two ids share a workspace.
 */
export function workspaceOf(sessionId: string): string {
  const [kind, user, ...rotation] = sessionId.split(":")
  const stable = kind === "orchestrator" && rotation.length > 0 ? `${kind}:${user}` : sessionId
  const wanted = `workspace-${stable.replaceAll(":", "-")}`
  if (/^[a-z0-9-]*[a-z0-9]$/.test(wanted) && wanted.length <= nameCharsMax) return wanted
  const digest = createHash("sha256").update(stable).digest("hex").slice(0, digestChars)
  const plain = wanted.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")
  return `${plain.slice(0, nameCharsMax - digestChars - 1).replace(/-+$/, "")}-${digest}`
}
