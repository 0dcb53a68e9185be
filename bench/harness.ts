import type { Amount, Context, Goal, Metric, Prepared } from "./metric.ts"
import { meets, rounded, summarize, type Summary } from "./statistics.ts"

export interface Result extends Summary {
  readonly name: string
  readonly unit: string
  readonly baseline: { readonly name: string; readonly p50: number } | null
  readonly ratio: number | null
  readonly better?: "higher"
  readonly goal?: Goal
  readonly met?: boolean
}

const defaultSamples: Amount = { full: 200, quick: 20 }
/** What one metric may take: figures that nobody waits for are not measured again. */
const patienceMs: Amount = { full: 10_000, quick: 6_000 }
/** Compilers and caches settle in the first tenth, and not in less than this. */
const warmupShare = 0.1
const warmupMs: Amount = { full: 2_000, quick: 700 }
const turnsMin = 3

type Progress = (done: number, wanted: number) => void

/** Samples a metric and its baseline in turns, so that what drifts meanwhile (clock, heat, neighbours) hits both alike. */
export async function measure(metric: Metric, context: Context, onProgress: Progress): Promise<Result> {
  const prepared = await metric.prepare(context)
  const size = context.isQuick ? "quick" : "full"
  const wanted = (metric.samples ?? defaultSamples)[size]
  const perTurn = metric.perTurn ?? 1
  const turns = Math.ceil(wanted / perTurn)
  const patience = context.patienceMs ?? patienceMs[size]
  const started = performance.now()
  const elapsed = (): number => performance.now() - started
  // What is measured once is measured cold.
  if (wanted > 1) {
    for (let turn = 0; turn < turns * warmupShare || elapsed() < warmupMs[size]; turn++) {
      context.signal.throwIfAborted()
      await sampleBoth(prepared, perTurn)
    }
  }
  const ours: number[] = []
  const theirs: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    context.signal.throwIfAborted()
    if (turn >= turnsMin && elapsed() > patience) break
    const sampled = await sampleBoth(prepared, perTurn)
    ours.push(...sampled.ours)
    theirs.push(...sampled.theirs)
    onProgress(ours.length, wanted)
  }
  return resultOf(metric, ours, theirs)
}

async function sampleBoth(prepared: Prepared, times: number): Promise<{ ours: number[]; theirs: number[] }> {
  const theirs = prepared.baseline ? await sample(prepared.baseline, times) : []
  return { ours: await sample(prepared.ours, times), theirs }
}

async function sample(take: () => number | Promise<number>, times: number): Promise<number[]> {
  const values: number[] = []
  for (let i = 0; i < times; i++) values.push(await take())
  return values
}

export function resultOf(metric: Omit<Metric, "prepare">, ours: readonly number[], theirs: readonly number[]): Result {
  const { name, unit, goal, isHigherBetter = false, baselineName } = metric
  const summary = summarize(ours, isHigherBetter)
  const theirP50 = summarize(theirs, isHigherBetter).p50
  const ratio = baselineName === undefined ? null : rounded(summary.p50 / theirP50)
  return {
    name,
    unit,
    n: summary.n,
    p50: rounded(summary.p50),
    p95: rounded(summary.p95),
    p99: rounded(summary.p99),
    baseline: baselineName === undefined ? null : { name: baselineName, p50: rounded(theirP50) },
    ratio,
    ...(isHigherBetter ? { better: "higher" as const } : {}),
    ...(goal ? { goal, met: meets(goal, summary.p50, ratio) } : {}),
  }
}
