import { Fault } from "@warren/base/fault.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { ask } from "@warren/drivers/init/ask.ts"
import { Files } from "@warren/drivers/init/files.ts"
import { InitProcess } from "@warren/protocol/init.ts"
import { z } from "zod"
import { markOf } from "./marked.ts"

/** Programs that want to stay awake keep a file here whose time is in the future: `touch -d '+10 minutes' /tmp/keep-awake/me`. */
export const keepAwakeFolder = "/tmp/keep-awake"
/** Who drives a session's agent runs as long as the sandbox; whether the agent works is known to the hub. */
export const supervisorPath = "/tmp/.warren/supervisor.mjs"
/** So that a mistake, or a program that has died, does not hold it for ever. */
const aheadMsMax = 24 * 3600_000

/** Whether anything started through Warren still runs, or something inside asks to stay awake. */
export async function lookInside(sandbox: Sandbox, now: number, signal: AbortSignal): Promise<"busy" | "quiet"> {
  const { processes } = await ask(sandbox, { op: "ps" }, z.object({ processes: z.array(InitProcess) }), signal)
  for (const { running, shell, argv, pid } of processes)
    if (running && shell === null && (await isWork(sandbox, argv, pid, signal))) return "busy"
  const entries = await awakeFiles(sandbox)
  return entries.some(({ mtimeMs }) => mtimeMs > now && mtimeMs - now <= aheadMsMax) ? "busy" : "quiet"
}

/** Not what Warren itself keeps running: that serves whoever looks. A terminal works while something runs in its shell. */
async function isWork(sandbox: Sandbox, argv: readonly string[], pid: number, signal: AbortSignal): Promise<boolean> {
  const mark = markOf(argv)
  if (mark?.kind === "service" || argv[1] === supervisorPath) return false
  return mark?.kind === "terminal" ? hasChildren(sandbox, pid, signal) : true
}

async function hasChildren(sandbox: Sandbox, pid: number, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const bytes of new Files(sandbox).read(`/proc/${pid}/task/${pid}/children`, {}, signal))
      if (/\d/.test(bytes.toString())) return true
  } catch (failure) {
    if (Fault.from(failure).code !== "not_found") throw failure
  }
  return false
}

async function awakeFiles(sandbox: Sandbox): Promise<{ readonly mtimeMs: number }[]> {
  try {
    return (await new Files(sandbox).list(keepAwakeFolder)).entries
  } catch (failure) {
    if (Fault.from(failure).code === "not_found") return []
    throw failure
  }
}
