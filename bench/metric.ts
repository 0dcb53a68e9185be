import type { Scope } from "@warren/base/scope.ts"

/** What must hold for the metric to be good enough. `ratio` is ours divided by the baseline's, both at the median. */
export interface Goal {
  readonly ratioMax?: number
  readonly ratioMin?: number
  readonly p50Max?: number
}

export interface Amount {
  readonly full: number
  readonly quick: number
}

export interface Context {
  /** A folder of its own, on the file system where Warren keeps its data. Removed afterwards. */
  readonly folder: string
  /** Ends what the metric started. */
  readonly scope: Scope
  readonly signal: AbortSignal
  readonly isQuick: boolean
  /** What sampling may take at most; the harness knows when nothing is said. */
  readonly patienceMs?: number | undefined
  /** Starts `bench/peers/NAME.ts` in a process of its own; resolves with its socket once it listens. */
  peer(name: string): Promise<string>
  /** This machine cannot measure that. The reason is shown in place of a figure. */
  skip(why: string): never
}

interface Side<State> {
  /** Takes one sample and says what came out, in the metric's unit. */
  run(state: State): number | Promise<number>
}

export interface MetricDefinition<State> extends Side<State> {
  /** The same as the file's: `sandbox.create.cold` is in `metrics/sandbox.create.cold.ts`. */
  readonly name: string
  /** `ms`, `us`, `MB`, `MB/s`. */
  readonly unit: string
  /** Throughput: more is better, and the percentiles count from the best sample down. */
  readonly isHigherBetter?: boolean
  readonly goal?: Goal
  /** How many samples; fewer when they take longer than the harness allows one metric. 200 and 20 unless told. */
  readonly samples?: Amount
  /** Samples of one side before the other side's turn: 1 unless told, more for what takes microseconds. */
  readonly perTurn?: number
  /** What it is measured against, in the same run. */
  readonly baseline?: Side<State> & { readonly name: string }
  /** Starts whatever both sides need. Not measured. */
  prepare(context: Context): Promise<State>
}

/** Both sides of a metric, ready to be sampled. */
export interface Prepared {
  ours(): number | Promise<number>
  baseline?(): number | Promise<number>
}

export interface Metric extends Omit<MetricDefinition<never>, "prepare" | "run" | "baseline"> {
  readonly baselineName: string | undefined
  prepare(context: Context): Promise<Prepared>
}

/** Keeps the type of what `prepare` makes between a metric's own functions; the harness need not know it. */
export function defineMetric<State>(definition: MetricDefinition<State>): Metric {
  const { baseline } = definition
  return {
    ...definition,
    baselineName: baseline?.name,
    async prepare(context) {
      const state = await definition.prepare(context)
      const ours = (): number | Promise<number> => definition.run(state)
      return baseline ? { ours, baseline: () => baseline.run(state) } : { ours }
    },
  }
}

/** How long some work takes, in milliseconds. */
export async function elapsedMs(work: () => unknown): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
