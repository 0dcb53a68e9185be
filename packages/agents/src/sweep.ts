import { readdirSync, readFileSync } from "node:fs"

/** In the environment of what an adapter starts, and so of everything that starts in turn, also in a group of its own. */
export const runVariable = "WARREN_RUN"
/** Who starts others while being looked for is found in another round. */
const roundsMax = 5

/** Kills every process whose run begins with these letters. */
export function sweep(run: string): void {
  for (let round = 0; round < roundsMax; round++) {
    const found = processesOf(run)
    if (found.length === 0) return
    for (const pid of found) kill(pid)
  }
}

function processesOf(run: string): number[] {
  const text = `${runVariable}=${run}`
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => pid !== process.pid && environmentOf(pid).some((one) => one.startsWith(text)))
}

/** One that is gone, or another's, has none. */
function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0")
  } catch {
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has ended by itself.
  }
}
