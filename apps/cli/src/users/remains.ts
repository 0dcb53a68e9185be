import { readdirSync, readFileSync, rmSync, rmdirSync } from "node:fs"
import { systemClock } from "@warren/base/clock.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { groupFoldersOf } from "@warren/protocol/launcher/group-folders.ts"
import type { IdRange } from "./linux-account.ts"

const killMs = 20_000
const lookAgainMs = 20

/** Ends every process with one of these ids: a user's runner, sandboxes, and whatever else they have started. */
export async function endProcesses(ids: readonly IdRange[], signal: AbortSignal): Promise<void> {
  const deadline = systemClock.monotonic() + killMs
  for (;;) {
    const pids = processesOf(ids)
    if (pids.length === 0) return
    if (systemClock.monotonic() > deadline) {
      throw new Fault("timeout", `${pids.length} processes of the user do not end`, { hint: `pids: ${pids.join(" ")}` })
    }
    for (const pid of pids) kill(pid)
    await systemClock.sleep(lookAgainMs, signal)
  }
}

/** Living ones. Root is nobody's subordinate, whatever a file says. */
function processesOf(ids: readonly IdRange[]): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    const status = statusOf(pid)
    const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1] ?? 0)
    const isOver = /^State:\t[ZX]/m.test(status)
    return uid > 0 && !isOver && ids.some(({ first, count }) => uid >= first && uid < first + count)
  })
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8")
  } catch {
    return ""
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch (failure) {
    if (errnoOf(failure) !== "ESRCH") throw failure
  }
}

/** The cgroups of a user whose processes have ended. */
export async function removeGroups(user: string, signal: AbortSignal): Promise<void> {
  const deadline = systemClock.monotonic() + killMs
  for (const folder of groupFoldersOf(user).folders) {
    // A group of a process that has just ended is busy for a moment.
    while (!tryRemove(folder)) {
      if (systemClock.monotonic() > deadline) throw new Fault("timeout", `the cgroup ${folder} stays busy`)
      await systemClock.sleep(lookAgainMs, signal)
    }
  }
}

function tryRemove(folder: string): boolean {
  try {
    const inside = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const isEmpty = inside.map(({ name }) => tryRemove(`${folder}/${name}`)).every(Boolean)
    if (isEmpty) rmdirSync(folder)
    return isEmpty
  } catch (failure) {
    if (errnoOf(failure) === "ENOENT") return true
    if (errnoOf(failure) === "EBUSY") return false
    throw failure
  }
}

export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true })
}
