import { Fault } from "@warren/base/fault.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import type { Place } from "./config/place.ts"
import { Runner } from "./runner/runner.ts"
import type { Interrupts } from "./terminal/interrupts.ts"
import type { Output } from "./terminal/output.ts"
import type { Terminal } from "./terminal/terminal.ts"

/** What a verb works with. */
export interface Desk {
  readonly terminal: Terminal
  readonly output: Output
  readonly interrupts: Interrupts
  /** Aborts when the person does not want it any more. */
  readonly signal: AbortSignal
  /** The folder with the built programs. */
  readonly programs: string
  /** Whose Warren is meant; reading `runner.toml` may fail, so it is read when it is asked for. */
  place(): Promise<Place>
}

/** Asks the runner and hangs up. */
export async function withRunner<T>(desk: Desk, work: (runner: Runner) => Promise<T>): Promise<T> {
  const { home } = await desk.place()
  await using runner = await connectRunner(home, desk.signal)
  return await work(runner)
}

export async function connectRunner(home: string, signal: AbortSignal): Promise<Runner> {
  try {
    return await Runner.connect(rpcSocketOf(home), signal)
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === "unavailable") throw noRunner(home, thrown)
    throw thrown
  }
}

export function noRunner(home: string, cause?: unknown): Fault {
  return new Fault("unavailable", `no runner is running for ${home}`, {
    hint: "start one with: warren start --daemon",
    subject: `runner:${home}`,
    cause,
  })
}
