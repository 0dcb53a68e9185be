const boundsS = [0.005, 0.025, 0.1, 0.5, 2.5, 10] as const

interface Series {
  count: number
  sumS: number
  readonly below: number[]
}

/** What a metric is told of one request. */
export interface Observed {
  readonly call: string
  readonly status: number
  readonly seconds: number
}

/** Counts for Prometheus: by call and status. There is no user, session or address in them. */
export class Metrics {
  readonly #requests = new Map<string, Series>()
  readonly #gauges = new Map<string, { readonly help: string; read(): number }>()
  inFlight = 0

  constructor() {
    this.gauge("warren_requests_in_flight", "Requests being answered.", () => this.inFlight)
    this.gauge("process_resident_memory_bytes", "Memory in use.", () => process.memoryUsage.rss())
    this.gauge("process_uptime_seconds", "How long it has been running.", () => process.uptime())
  }

  gauge(name: string, help: string, read: () => number): void {
    this.#gauges.set(name, { help, read })
  }

  observe({ call, status, seconds }: Observed): void {
    const key = `call="${call}",status="${status}"`
    const series = this.#requests.get(key) ?? { count: 0, sumS: 0, below: boundsS.map(() => 0) }
    this.#requests.set(key, series)
    series.count++
    series.sumS += seconds
    for (const [index, bound] of boundsS.entries())
      if (seconds <= bound) series.below[index] = (series.below[index] ?? 0) + 1
  }

  /** In Prometheus' text form. */
  text(): string {
    const gauges = [...this.#gauges].flatMap(([name, { help, read }]) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} gauge`,
      `${name} ${read()}`,
    ])
    const head = [
      "# HELP warren_request_seconds Requests at the public door.",
      "# TYPE warren_request_seconds histogram",
    ]
    return [...gauges, ...head, ...[...this.#requests].flatMap(([labels, series]) => linesOf(labels, series)), ""].join(
      "\n",
    )
  }
}

function linesOf(labels: string, { count, sumS, below }: Series): string[] {
  const name = "warren_request_seconds"
  return [
    ...boundsS.map((bound, index) => `${name}_bucket{${labels},le="${bound}"} ${below[index]}`),
    `${name}_bucket{${labels},le="+Inf"} ${count}`,
    `${name}_sum{${labels}} ${sumS}`,
    `${name}_count{${labels}} ${count}`,
  ]
}
