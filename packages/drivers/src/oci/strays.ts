import { readdirSync, readFileSync } from "node:fs"
import type { SandboxId } from "../sandbox-spec.ts"
import type { ProcessName } from "./launcher.ts"
import { startTicksOf } from "./process.ts"

/**
 * Processes of a sandbox that nobody knows of: their launcher died before it could tell. Where there are no groups they are found
 * by what they have mounted, a file of the sandbox's own. What is before that step ends by itself with its launcher.
 */
export function straysOf(id: SandboxId): ProcessName[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
  return pids.flatMap((pid) => {
    const startTicks = startTicksOf(Number(pid))
    const isIts = mountsOf(pid).includes(`/${id}/etc/hosts `)
    return isIts && startTicks !== undefined ? [{ pid: Number(pid), startTicks }] : []
  })
}

/** Nothing where we have no right to look: what is in our own namespaces we may see. */
function mountsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8")
  } catch {
    return ""
  }
}
