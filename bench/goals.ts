/** One promise about speed, and the metrics that show whether it is kept. */
export interface Promised {
  readonly what: string
  readonly metrics: readonly string[]
}

/** Everything ARCHITECTURE §9 promises. How much is in the metrics themselves. */
export const promised: readonly Promised[] = [
  {
    what: "Cold create up to the end of the first command: ≤ 0.4 × stock `crun run` of the same rootfs, ≤ 2.5 × the C floor, ≤ 1.3 × bwrap",
    metrics: ["sandbox.cold", "sandbox.cold-vs-floor", "sandbox.cold-vs-bwrap"],
  },
  {
    what: "Warm create (pool) up to the end of the first command, through HTTP: ≤ 2 × the same command alone in a running sandbox",
    metrics: ["http.warm"],
  },
  {
    what: "`true` over the init socket ≤ 2 ×, through HTTP ≤ 4 × a bare fork+exec+wait of it",
    metrics: ["exec.true", "http.exec-vs-fork"],
  },
  { what: "Persistent shell command: ≤ 1.5 ms at p50", metrics: ["shell.run"] },
  { what: "Destroy: ≤ 0.5 × stock `crun delete -f`", metrics: ["sandbox.destroy"] },
  {
    what: "Idle memory per sandbox, 200 running: ≤ 0.6 MB all in, kernel included",
    metrics: ["sandbox.memory"],
  },
  {
    what: "500 live sandboxes: create and exec p50 within 1.3 × of those with 1",
    metrics: ["sandbox.live-500.create", "sandbox.live-500.exec", "session.live-500"],
  },
  {
    what: "Snapshot and fork: same time at 10 MB and 1 GB of changes (within 1.5 ×)",
    metrics: ["snapshot.size", "fork.size"],
  },
  {
    what: "Output: ≥ 0.5 × a pipe to `cat`; memory flat at 10 GB; a slow reader slows only its own command",
    metrics: ["output.throughput", "output.memory", "output.slow-reader"],
  },
]
