import { systemClock } from "@warren/base/clock.ts"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import { connectRunner } from "../desk.ts"
import { forgetHolder, readHolder, readOrphans } from "./pid-file.ts"
import { isAlive, type ProcessIdentity } from "./process-identity.ts"

const patienceMs = 20_000
const lookAgainMs = 20

/**
 * Ends a Warren and waits until it is gone: through who keeps it, or its parts when that was killed, or a runner that somebody
 * started alone. Sandboxes go on. Returns the processes that were told to end.
 */
export async function stopWarren(home: string, signal: AbortSignal): Promise<readonly number[]> {
  const holder = readHolder(home)
  const told = holder ? [holder] : readOrphans(home)
  if (told.length === 0) return [await stopLoneRunner(home, signal)]
  for (const each of told) tell(each)
  for (const each of [...told, ...(holder?.parts ?? [])]) await untilGone(each, signal)
  if (!holder) forgetHolder(home)
  return told.map(({ pid }) => pid)
}

function tell({ pid }: ProcessIdentity): void {
  try {
    process.kill(pid, "SIGTERM")
  } catch (cause) {
    // Gone between the look and the signal.
    if (errnoOf(cause) === "ESRCH") return
    throw new Fault("forbidden", `process ${pid} belongs to somebody else`, { cause })
  }
}

async function untilGone(process: ProcessIdentity, signal: AbortSignal): Promise<void> {
  await until(() => Promise.resolve(!isAlive(process)), `process ${process.pid}`, signal)
}

async function until(isSo: () => Promise<boolean>, what: string, signal: AbortSignal): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Fault("timeout", `${what} did not end`)
    await systemClock.sleep(lookAgainMs, signal)
  }
}

async function stopLoneRunner(home: string, signal: AbortSignal): Promise<number> {
  await using runner = await connectRunner(home, signal)
  const { pid } = await runner.call("health.check", {})
  // It may be gone before its answer is here.
  await runner.call("runner.shutdown", {}).catch((thrown: unknown) => {
    if (!(thrown instanceof Fault) || thrown.code !== "unavailable") throw thrown
  })
  await until(async () => !(await isAnswering(home, signal)), "the runner", signal)
  return pid
}

async function isAnswering(home: string, signal: AbortSignal): Promise<boolean> {
  try {
    await using runner = await connectRunner(home, signal)
    await runner.call("health.check", {})
    return true
  } catch (thrown) {
    if (signal.aborted) throw thrown
    return false
  }
}
