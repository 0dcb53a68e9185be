import { systemClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { connectRunner } from "../desk.ts"
import { isAlive, readHolder, type Holder } from "./pid-file.ts"

const patienceMs = 20_000
const lookAgainMs = 20

/** Ends what keeps a Warren running, and waits until it is gone. Sandboxes go on. Returns what was stopped. */
export async function stopWarren(home: string, signal: AbortSignal): Promise<Holder | "runner"> {
  const holder = readHolder(home)
  if (!holder) {
    await stopLoneRunner(home, signal)
    return "runner"
  }
  tell(holder)
  await untilGone(holder, signal)
  return holder
}

function tell({ pid }: Holder): void {
  try {
    process.kill(pid, "SIGTERM")
  } catch (cause) {
    throw new Fault("forbidden", `process ${pid} belongs to somebody else`, { cause })
  }
}

async function untilGone(holder: Holder, signal: AbortSignal): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs
  while (isAlive(holder)) {
    if (systemClock.monotonic() > deadline) throw new Fault("timeout", `process ${holder.pid} did not end`)
    await systemClock.sleep(lookAgainMs, signal)
  }
}

/** A runner that somebody started without us: it is asked, and its socket says when it has gone. */
async function stopLoneRunner(home: string, signal: AbortSignal): Promise<void> {
  {
    await using runner = await connectRunner(home, signal)
    await runner.call("runner.shutdown", {})
  }
  const deadline = systemClock.monotonic() + patienceMs
  while (await isAnswering(home, signal)) {
    if (systemClock.monotonic() > deadline) throw new Fault("timeout", "the runner did not end")
    await systemClock.sleep(lookAgainMs, signal)
  }
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
