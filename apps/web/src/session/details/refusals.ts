import type { Output } from "@warren/sdk/routes.ts"

type Denial = Output<"GET /v1/sessions/{id}/denials">["denials"][number]["denial"]

export interface Refusal {
  readonly host: string
  /** As the list of allowed hosts would have it. */
  readonly wanted: string
  readonly times: number
  /** The last time, and why. */
  readonly at: string
  readonly reason: string
}

const usualPorts: ReadonlySet<number> = new Set([80, 443])

/** One line for each host that was refused, the last first. */
export function refusals(denials: readonly Denial[]): readonly Refusal[] {
  const found = new Map<string, Refusal>()
  for (const { host, port, at, reason } of denials) {
    const wanted = usualPorts.has(port) ? host : `${host}:${port}`
    const times = (found.get(wanted)?.times ?? 0) + 1
    found.delete(wanted)
    found.set(wanted, { host, wanted, times, at, reason })
  }
  return [...found.values()].toReversed()
}
