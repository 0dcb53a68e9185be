import { Fault } from "@warren/base/fault.ts"

/** Where a copy comes from or goes to. */
export type Location =
  | { readonly kind: "stream" }
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "inside"; readonly place: Place; readonly path: string }

/** Whose files: a session's or a workspace's. */
export type Place = { readonly session: string } | { readonly workspace: string }

/** `-`, `./file`, `session:/path` or `@workspace:path`. What begins with `.` or `/` is always a file here. */
export function locationOf(text: string): Location {
  if (text === "") throw new Fault("invalid", "an empty path")
  if (text === "-") return { kind: "stream" }
  const at = text.indexOf(":")
  if (at < 1 || /^[./]/.test(text)) return { kind: "local", path: text }
  const [name, path] = [text.slice(0, at), text.slice(at + 1)]
  if (name.startsWith("@")) return { kind: "inside", place: { workspace: name.slice(1) }, path: path || "/" }
  if (path === "") throw new Fault("invalid", `"${text}" has no path`, { hint: `such as ${name}:/workspace/file` })
  return { kind: "inside", place: { session: name }, path: path.startsWith("/") ? path : `/workspace/${path}` }
}
