import { connectUnix } from "@warren/base/unix-socket.ts"
import { Operation } from "../init/operation.ts"
import type { OciSandbox } from "./sandbox.ts"

/** What init itself may need beyond the grace to say goodbye. */
const farewellMs = 1_000

/** A connection that stays open for as long as init lives: its answer is readiness, its end is death. */
export async function hold(socket: string, signal: AbortSignal): Promise<Operation> {
  const operation = new Operation(await connectUnix(socket, signal), { op: "hold" })
  const abort = (): void => void operation[Symbol.asyncDispose]()
  signal.addEventListener("abort", abort, { once: true })
  try {
    await operation.event("ok")
    return operation
  } catch (failure) {
    throw signal.aborted ? signal.reason : failure
  } finally {
    signal.removeEventListener("abort", abort)
  }
}

/** Asks init to end everything in order, and waits for it, not for ever. */
export async function farewell(sandbox: OciSandbox, graceMs: number): Promise<void> {
  const patience = AbortSignal.timeout(graceMs + farewellMs)
  try {
    await sandbox.resume()
    await using stop = new Operation(await sandbox.connect(patience), { op: "stop", graceMs }, patience)
    await stop.event("ok")
    const late = new Promise<void>((resolve) => patience.addEventListener("abort", () => resolve(), { once: true }))
    await Promise.race([sandbox.ended, late])
  } catch {
    // It does not answer: what follows does not ask.
  }
}
