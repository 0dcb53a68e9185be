import type { Exit } from "@warren/protocol/init.ts"
import type { z } from "zod"
import type { Sandbox } from "../driver.ts"

type Told = Pick<z.output<typeof Exit>, "code" | "signal" | "reason">

/** `oom` is what only the host can see: the kernel killed it because the sandbox's memory ran out. */
export type EndReason = Told["reason"] | "oom"

/** What a shell says of a command that was killed: 128 and the number of the signal. */
const killedCode = 137

/**
 * Tells ends for want of memory from others. Made before the process starts, so that a kill in its first moment counts, too.
 * The kernel says how many it killed, not which: of two that are killed at the same time, both are called `oom`.
 */
export class OomWatch {
  readonly #sandbox: Pick<Sandbox, "oomKills">
  readonly #before: number

  constructor(sandbox: Pick<Sandbox, "oomKills">) {
    this.#sandbox = sandbox
    this.#before = sandbox.oomKills()
  }

  reason({ code, signal, reason }: Told): EndReason {
    const isKilled = reason === "signal" ? signal === "SIGKILL" : reason === "exit" && code === killedCode
    return isKilled && this.#sandbox.oomKills() > this.#before ? "oom" : reason
  }
}
