import type { Clock } from "@warren/base/clock.ts"
import { keepNewest } from "@warren/base/keep-newest.ts"
import type { Plane } from "../plane.ts"
import type { Sandbox } from "../sandboxes.ts"
import { allSandboxes } from "./list.ts"
import type { ApiParts, On } from "./door.ts"

const limits = { samplesMax: 120, sandboxesMax: 2_000 } as const

interface Sample {
  readonly timestamp: string
  readonly timestampUnix: number
  readonly cpuUsedPct: number
  readonly [field: string]: number | string
}

interface Measured {
  readonly at: number
  readonly cpuUs: number
  readonly samples: Sample[]
}

/** What sandboxes use: one sample each time somebody asks, and those from before. */
class Measurements {
  readonly #clock: Clock
  readonly #all = new Map<string, Measured>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async take(plane: Plane, { id, session }: Sandbox): Promise<Sample[]> {
    const stats = await plane.call("session.stats", { id: session.id })
    const before = this.#all.get(id) ?? { at: Date.parse(session.createdAt), cpuUs: 0, samples: [] }
    const at = this.#clock.now()
    const cpuCount = Math.max(1, Math.ceil(session.limits.cpus))
    const used = (stats.cpuUs - before.cpuUs) / (Math.max(1, at - before.at) * 1000)
    const sample = {
      ...{ timestamp: new Date(at).toISOString(), timestampUnix: Math.floor(at / 1000), cpuCount },
      cpuUsedPct: Math.round(Math.max(0, used) * 10_000) / 100,
      ...{ memUsed: stats.memoryBytes, memTotal: session.limits.memoryBytes, memCache: 0 },
      ...{ diskUsed: stats.diskBytes, diskTotal: session.limits.diskBytes },
    }
    const samples = [...before.samples, sample].slice(-limits.samplesMax)
    keepNewest(this.#all, limits.sandboxesMax, id, { at, cpuUs: stats.cpuUs, samples })
    return samples
  }
}

export function metricRoutes(on: On, { sandboxes, clock }: ApiParts): void {
  const measurements = new Measurements(clock)
  on("GET /sandboxes/metrics", async ({ plane, c }) => {
    const asked = (c.req.query("sandbox_ids") ?? "").split(",").filter((id) => id !== "")
    const all = await allSandboxes(plane, sandboxes)
    const wanted = all.filter(({ id }) => asked.length === 0 || asked.includes(id))
    const found = await Promise.all(
      wanted.map(async (one) => [one.id, (await measurements.take(plane, one)).at(-1)] as const),
    )
    return c.json({ sandboxes: Object.fromEntries(found) })
  })
  on("GET /sandboxes/:id/metrics", async ({ plane, id, c }) => {
    const samples = await measurements.take(plane, await sandboxes.get(plane, id))
    const [start, end] = [Number(c.req.query("start") ?? 0), Number(c.req.query("end") ?? Infinity)]
    return c.json(samples.filter(({ timestampUnix }) => timestampUnix >= start && timestampUnix <= end))
  })
  for (const prefix of ["", "/v2"]) {
    on(`GET ${prefix}/sandboxes/:id/logs`, async ({ plane, id, c }) => {
      const { session } = await sandboxes.get(plane, id)
      const { entries } = await plane.call("logs.read", { session: session.id, limit: 1_000 })
      const logs = entries.map(({ entry }) => ({ timestamp: entry.time, line: entry.event }))
      const logEntries = entries.map(({ entry: { time, level, event, fields } }) => {
        const texts = Object.entries(fields).map(([name, value]) => [name, String(value)] as const)
        return { timestamp: time, level, message: event, fields: Object.fromEntries(texts) }
      })
      return c.json({ logs, logEntries })
    })
  }
}
