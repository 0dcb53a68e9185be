import type { ChangedFile } from "@warren/protocol/user-plane/git.ts"

const statuses: Readonly<Record<string, ChangedFile["status"]>> = {
  A: "added",
  M: "modified",
  D: "deleted",
  R: "renamed",
  C: "copied",
  T: "type",
  U: "unmerged",
}

/** What `git diff --raw --numstat -z` says: first how each file changed, then by how much. What was cut off is left out. */
export function parseChanges(text: string): ChangedFile[] {
  const tokens = text.split("\0")
  const files = new Map<string, ChangedFile>()
  let at = 0
  const next = (): string => tokens[at++] ?? ""
  while (at < tokens.length - 1) {
    const token = next()
    const [, letter] = /^:\d+ \d+ [0-9a-f.]+ [0-9a-f.]+ ([A-Z])\d*$/.exec(token) ?? []
    if (letter !== undefined) {
      const isMoved = letter === "R" || letter === "C"
      const first = next()
      const path = isMoved ? next() : first
      if (at >= tokens.length) break
      // A file in conflict is listed once more as what it is in the folder.
      const known = files.get(path)?.status === "unmerged"
      if (!known) files.set(path, { path, status: statuses[letter] ?? "modified", ...(isMoved ? { from: first } : {}) })
      continue
    }
    const [, additions, deletions, name] = /^(\d+|-)\t(\d+|-)\t([^]*)$/.exec(token) ?? []
    if (additions === undefined || deletions === undefined) continue
    if (name === "") next()
    const path = name === "" ? next() : (name ?? "")
    const known = files.get(path)
    if (!known || additions === "-") continue
    files.set(path, { ...known, additions: Number(additions), deletions: Number(deletions) })
  }
  return [...files.values()]
}
