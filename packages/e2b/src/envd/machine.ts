import { runToEnd } from "../run-to-end.ts"
import type { Inside } from "./inside.ts"

const mib = 1024 * 1024

/** What the sandbox uses, as its own program would say. */
export async function usage({ plane, session, sandbox }: Inside): Promise<object> {
  const stats = await plane.call("session.stats", { id: session })
  const { limits, createdAt } = sandbox.session
  // On the average since it was made: nobody looks at it in between.
  const ageMs = Math.max(1, Date.now() - Date.parse(createdAt))
  return {
    ts: Math.floor(Date.now() / 1000),
    cpu_count: Math.max(1, Math.ceil(limits.cpus)),
    cpu_used_pct: Math.round((stats.cpuUs / 10 / ageMs / limits.cpus) * 100) / 100,
    ...{ mem_total: limits.memoryBytes, mem_used: stats.memoryBytes, mem_cache: 0 },
    ...{ mem_total_mib: Math.round(limits.memoryBytes / mib), mem_used_mib: Math.round(stats.memoryBytes / mib) },
    ...{ disk_used: stats.diskBytes, disk_total: limits.diskBytes },
  }
}

/** What programs find that are told nothing. */
export async function environment({ plane, session, user }: Inside): Promise<Record<string, string>> {
  const { output } = await runToEnd(plane, { session, user, argv: ["env", "-0"] })
  const pairs = output.split("\0").filter((pair) => pair.includes("="))
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]))
}
