import { readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { ProcessName } from "../oci/launcher.ts"
import { allPids, environmentOf, isAlive, readProcess, uidOf } from "./process-tree.ts"

const pollMs = 1
const killMs = 10_000
/** How long a keeper may take to end everything before it is ended itself. */
const keeperMs = 3_000

/** Waits for something that is read, not told. False when it did not come true in time. */
export async function until(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs
  while (!isSo()) {
    if (performance.now() > end) return false
    await sleep(pollMs)
  }
  return true
}

/** Has the keeper end the sandbox. True when it did, and so nothing is left. */
export async function endKeeper(keeper: ProcessName): Promise<boolean> {
  if (!isAlive(keeper)) return false
  signal(keeper.pid, "SIGTERM")
  if (await until(() => !isAlive(keeper), keeperMs)) return true
  if (isAlive(keeper)) signal(keeper.pid, "SIGKILL")
  await until(() => !isAlive(keeper), killMs)
  return false
}

export interface Strays {
  readonly uid: number
  readonly isPerson: boolean
  /** A path that only this sandbox's environment holds. */
  readonly folder: string
}

/** Ends what a keeper that died before its time left behind. */
export async function endStrays({ uid, isPerson, folder }: Strays): Promise<void> {
  const isStray = (pid: number): boolean =>
    pid !== process.pid && uidOf(pid) === uid && (!isPerson || environmentOf(pid).includes(folder))
  const none = (): boolean => {
    const strays = allPids().filter((pid) => isStray(pid) && readProcess(pid)?.isDead === false)
    for (const pid of strays) signal(pid, "SIGKILL")
    return strays.length === 0
  }
  if (!(await until(none, killMs))) throw notEnded("some of its processes do not end")
}

/** Kills everything in these groups and takes them away. Already gone is fine. */
export async function endGroups(folders: readonly string[]): Promise<void> {
  const isGone = (folder: string): boolean => {
    try {
      rmdirSync(folder)
      return true
    } catch (failure) {
      if (errnoOf(failure) === "ENOENT") return true
      for (const pid of pidsIn(folder)) signal(pid, "SIGKILL")
      return false
    }
  }
  const left = new Set(folders)
  const none = (): boolean => {
    for (const folder of left) if (isGone(folder)) left.delete(folder)
    return left.size === 0
  }
  if (!(await until(none, killMs))) throw notEnded(`its cgroups do not empty: ${[...left].join(", ")}`)
}

function pidsIn(folder: string): number[] {
  try {
    const text = readFileSync(join(folder, "cgroup.procs"), "utf8").trim()
    // 0 is a process that this pid namespace cannot see, and would be ourselves to kill().
    return text
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0)
  } catch {
    return []
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (failure) {
    if (errnoOf(failure) !== "ESRCH") throw failure
  }
}

function notEnded(why: string): Fault {
  return new Fault("timeout", `the sandbox could not be ended: ${why}`, { hint: "try again" })
}
