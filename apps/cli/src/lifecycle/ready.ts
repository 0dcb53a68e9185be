import { readFile } from "node:fs/promises"
import { Fault } from "@warren/base/fault.ts"
import { systemClock } from "@warren/base/clock.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { controlAddress } from "../control/address.ts"
import { speak, type ControlAddress } from "../control/connection.ts"

const readyMs = 30_000
const askAgainMs = 20

/** Resolves when the runner has answered through the control plane, as the call that is printed asks it. */
export async function untilReady(home: string, port: number, signal: AbortSignal): Promise<void> {
  const where = controlAddress(process.env, port)
  const deadline = systemClock.monotonic() + readyMs
  while (!(await answers(home, where, signal))) {
    if (systemClock.monotonic() > deadline) {
      throw new Fault("timeout", `Warren did not answer on port ${port} within ${readyMs / 1000} s`, {
        hint: "warren logs",
      })
    }
    await systemClock.sleep(askAgainMs, signal)
  }
}

async function answers(home: string, where: ControlAddress, signal: AbortSignal): Promise<boolean> {
  const token = await readFile(tokenFileOf(home), "utf8").catch(() => "")
  const question = { method: "GET", path: "/v1/health", token: token.trim() }
  const answer = await speak(where, question, signal).catch(() => undefined)
  signal.throwIfAborted()
  return answer?.status === 200
}
