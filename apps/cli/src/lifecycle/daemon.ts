import { spawn } from "node:child_process"
import { closeSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Writable } from "node:stream"
import { systemClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { makeHome } from "./account.ts"
import { readHolder } from "./pid-file.ts"
import type { Plan } from "./plan.ts"
import { untilReady } from "./ready.ts"

/** The hidden verb a daemon is started with. */
export const serveVerb = "_serve"
export const planFd = 3
const tailLines = 5
const lookAgainMs = 20

interface Started {
  readonly pid: number
  /** What its parts said to whoever started them, such as where to sign in for the first time. */
  readonly said: string
}

/** Starts a Warren that goes on when this process ends. Resolves when it answers. */
export async function startDaemon(plan: Plan, signal: AbortSignal): Promise<Started> {
  await makeHome(plan)
  const logFile = join(plan.home, "warren.log")
  const log = openSync(logFile, "w", 0o600)
  const child = spawn(process.execPath, [join(plan.programs, "cli.js"), serveVerb], {
    detached: true,
    cwd: "/",
    stdio: ["ignore", log, log, "pipe"],
  })
  closeSync(log)
  const pipe = child.stdio[planFd] as Writable
  pipe.on("error", () => undefined)
  pipe.end(JSON.stringify({ ...plan, isDaemon: true }))
  const ended = new AbortController()
  child.once("error", (cause) => ended.abort(new Fault("unavailable", "the daemon could not be started", { cause })))
  child.once("exit", () => ended.abort(failureOf(logFile)))
  try {
    const over = AbortSignal.any([signal, ended.signal])
    await untilReady(plan.home, plan.port, over)
    // If it is another Warren that answered, ours is about to say so and end.
    while (readHolder(plan.home)?.pid !== child.pid) await systemClock.sleep(lookAgainMs, over)
  } catch (thrown) {
    // Half started is not started: whoever did not wait for it does not want it.
    if (!ended.signal.aborted) child.kill("SIGTERM")
    throw thrown
  }
  child.unref()
  return { pid: child.pid ?? 0, said: readFileSync(logFile, "utf8").trim() }
}

/** What it said before it gave up: the error that was thrown, or its last lines. */
function failureOf(logFile: string): Fault {
  const lines = readFileSync(logFile, "utf8").trim().split("\n")
  const thrown = lines.find((line) => /^(\w*Error|Fault)\b.*: /.test(line))?.replace(/^[^:]*: /, "")
  const said =
    thrown ??
    lines
      .slice(-tailLines)
      .join("\n  ")
      .replace(/^warren: /, "")
  return new Fault("unavailable", `Warren did not start: ${said || "it said nothing"}`, { hint: `see ${logFile}` })
}
