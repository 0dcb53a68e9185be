import type { EndReason } from "@warren/drivers/init/oom.ts"
import type { Ended } from "@warren/protocol/user-plane/processes.ts"
import type { z } from "zod"

interface Told {
  readonly code: number | null
  readonly signal: string | null
  readonly reason: EndReason
  readonly durationUs: number
  readonly truncated: boolean
  readonly usage?: { readonly cpuUs: number; readonly maxRssBytes: number }
}

/** How init says that a program has ended, as everybody reads it. */
export function endedOf({ code, signal, reason, durationUs, truncated, usage }: Told): z.output<typeof Ended> {
  return { exitCode: code, signal, reason, durationMs: durationUs / 1000, truncated, ...usage }
}
