import type { SessionInfo } from "@warren/sdk/session.ts"
import type { ReactElement } from "react"
import { bytes } from "../../parts/when.tsx"
import { isAsleep } from "../asleep.tsx"
import { rates } from "./rates.ts"
import { UsagePlot } from "./usage-plot.tsx"
import { useUsage } from "./use-usage.ts"

/** Cpu, memory, disk and network as they are used, each with its limit. */
export function UsageSection({ session }: { readonly session: SessionInfo }): ReactElement {
  const { limits } = session
  const samples = useUsage(session.id, !isAsleep(session))
  const cpus = rates(samples, ({ cpuUs }) => cpuUs / 1_000_000)
  const network = rates(samples, ({ receivedBytes, sentBytes }) => receivedBytes + sentBytes)
  const now = samples.at(-1)?.stats
  const of = (limit: number): string => (limit > 0 ? `of ${bytes(limit)}` : "no limit")
  return (
    <section className="section">
      <header>
        <h2>Usage</h2>
        {now && now.oomKills > 0 && (
          <span className="badge" data-kind="warn">
            {now.oomKills} ended for want of memory
          </span>
        )}
      </header>
      <div className="usage">
        <UsagePlot
          limit={limits.cpus}
          name="Cpu"
          said={`of ${limits.cpus}`}
          shown={cpus.length > 0 ? (cpus.at(-1) ?? 0).toFixed(2) : "–"}
          values={cpus}
        />
        <UsagePlot
          limit={limits.memoryBytes}
          name="Memory"
          said={of(limits.memoryBytes)}
          shown={now ? bytes(now.memoryBytes) : "–"}
          values={samples.map(({ stats }) => stats.memoryBytes)}
        />
        <UsagePlot
          limit={limits.diskBytes || undefined}
          name="Disk"
          said={of(limits.diskBytes)}
          shown={now ? bytes(now.diskBytes) : "–"}
          values={samples.map(({ stats }) => stats.diskBytes)}
        />
        <UsagePlot
          name="Network"
          said={now ? `${bytes(now.receivedBytes)} in, ${bytes(now.sentBytes)} out` : undefined}
          shown={network.length > 0 ? `${bytes(network.at(-1) ?? 0)}/s` : "–"}
          values={network}
        />
        <UsagePlot
          limit={limits.pidsMax}
          name="Processes"
          said={`of ${limits.pidsMax}`}
          shown={now ? String(now.pids) : "–"}
          values={samples.map(({ stats }) => stats.pids)}
        />
      </div>
    </section>
  )
}
