import { readFile } from "node:fs/promises"
import { Fault } from "@warren/base/fault.ts"
import { systemClock } from "@warren/base/clock.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"

const readyMs = 30_000
const askAgainMs = 20

/** Resolves when the runner has answered through the control plane, as the call that is printed asks it. */
export async function untilReady(home: string, port: number, signal: AbortSignal): Promise<void> {
  const url = `http://127.0.0.1:${port}/v1/health`
  const deadline = systemClock.monotonic() + readyMs
  while (!(await answers(home, url, signal))) {
    if (systemClock.monotonic() > deadline) {
      throw new Fault("timeout", `Warren did not answer at ${url} within ${readyMs / 1000} s`, { hint: "warren logs" })
    }
    await systemClock.sleep(askAgainMs, signal)
  }
}

async function answers(home: string, url: string, signal: AbortSignal): Promise<boolean> {
  const token = await readFile(tokenFileOf(home), "utf8").catch(() => "")
  const headers = { authorization: `Bearer ${token.trim()}` }
  const answer = await fetch(url, { headers, signal }).catch(() => undefined)
  signal.throwIfAborted()
  return answer?.ok === true
}
