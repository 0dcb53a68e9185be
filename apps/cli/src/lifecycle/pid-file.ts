import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { z } from "zod"

const Holder = z.object({
  pid: z.int().min(1),
  /** When the kernel started it: a pid is used again, the two together are not. */
  startTicks: z.string(),
  port: z.int(),
  isDaemon: z.boolean(),
})
/** The process that keeps a Warren's parts running. */
export type Holder = z.output<typeof Holder>

const fileOf = (home: string): string => join(home, "warren.pid")

/** Who keeps this Warren running; undefined when nobody does, whatever a killed one has left behind. */
export function readHolder(home: string): Holder | undefined {
  const holder = Holder.safeParse(jsonOf(fileOf(home)))
  return holder.success && startTicksOf(holder.data.pid) === holder.data.startTicks ? holder.data : undefined
}

/** Makes this process the one that keeps this Warren running. Of two that try at once one is refused. */
export function hold(home: string, about: { port: number; isDaemon: boolean }): Disposable {
  const file = fileOf(home)
  const draft = `${file}.${process.pid}`
  const mine: Holder = { pid: process.pid, startTicks: startTicksOf(process.pid) ?? "", ...about }
  const other = readHolder(home)
  if (other) throw alreadyRunning(home, other)
  rmSync(file, { force: true })
  try {
    writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 })
    // A link is never made over another's; and whoever slips through here meets the runner's own lock.
    linkSync(draft, file)
  } catch (cause) {
    if (errnoOf(cause) === "EEXIST") throw new Fault("conflict", `Warren is already starting on ${home}`, { cause })
    throw new Fault("unavailable", `could not write ${file} (${errnoOf(cause)})`, { cause })
  } finally {
    rmSync(draft, { force: true })
  }
  return {
    [Symbol.dispose]: () => {
      if (readHolder(home)?.pid === process.pid) rmSync(file, { force: true })
    },
  }
}

export function isAlive({ pid, startTicks }: Holder): boolean {
  return startTicksOf(pid) === startTicks
}

function alreadyRunning(home: string, { pid }: Holder): Fault {
  return new Fault("conflict", `Warren is already running on ${home} (pid ${pid})`, {
    hint: "stop it with: warren stop",
  })
}

function jsonOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

/** Field 22 of its stat; the name before it may contain anything, so it is counted from the last bracket. */
function startTicksOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" ? undefined : fields[19]
  } catch {
    return undefined
  }
}
