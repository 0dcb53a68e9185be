import type { Beside } from "./beside.ts"
import { megabytes, short } from "./figures.ts"
import type { Growth } from "./growth.ts"
import type { Result } from "./harness.ts"
import type { Machine } from "./machine.ts"
import { plainTable, type Table } from "./table.ts"

export type Outcome =
  | { readonly kind: "measured"; readonly result: Result }
  | { readonly kind: "skipped" | "failed"; readonly name: string; readonly why: string }

/** Everything a run has shown. */
export interface Report {
  readonly machine: Machine
  readonly outcomes: readonly Outcome[]
  readonly beside?: Beside | undefined
  readonly growth?: Growth | undefined
}

/** What is kept of a run. A skipped metric is named, so that its absence is not taken for an oversight. */
export function toJson({ machine, outcomes, beside, growth }: Report): object {
  const skipped = outcomes.flatMap((outcome) =>
    outcome.kind === "measured" ? [] : [{ name: outcome.name, why: outcome.why }],
  )
  return {
    machine,
    metrics: resultsOf(outcomes),
    ...(beside ? { beside } : {}),
    ...(growth ? { growth } : {}),
    ...(skipped.length > 0 ? { skipped } : {}),
  }
}

/** The run as tables for a person. */
export function toTable({ machine, outcomes, beside, growth }: Report): string {
  const others = outcomes.flatMap((one) => (one.kind === "measured" ? [] : [`${one.name}  ${one.kind}: ${one.why}`]))
  const parts = [describe(machine), "", plainTable(metricTable(resultsOf(outcomes))), ...others]
  if (beside) parts.push("", plainTable(besideTable(beside)))
  if (growth) parts.push("", plainTable(growthTable(growth)))
  return parts.join("\n")
}

export function resultsOf(outcomes: readonly Outcome[]): Result[] {
  return outcomes.flatMap((outcome) => (outcome.kind === "measured" ? [outcome.result] : []))
}

export function metricTable(results: readonly Result[]): Table {
  return {
    head: ["metric", "unit", "n", "p50", "p95", "p99", "baseline p50", "ratio", "goal", ""],
    rows: results.map(rowOf),
    words: new Set([0, 1, 8, 9]),
  }
}

function rowOf(result: Result): string[] {
  const unit = result.better === "higher" ? `${result.unit} ↑` : result.unit
  const figures = [result.n, result.p50, result.p95, result.p99].map(String)
  const { baseline, ratio } = result
  return [
    result.name,
    unit,
    ...figures,
    baseline ? String(baseline.p50) : "–",
    ratio === null ? "–" : ratio.toFixed(2),
    goalOf(result),
    verdictOf(result),
  ]
}

export function verdictOf({ met }: Result): string {
  return met === undefined ? "" : met ? "met" : "MISSED"
}

export function goalOf({ goal, unit }: Result): string {
  const parts = [
    goal?.ratioMax === undefined ? "" : `ratio ≤ ${goal.ratioMax}`,
    goal?.ratioMin === undefined ? "" : `ratio ≥ ${goal.ratioMin}`,
    goal?.p50Max === undefined ? "" : `p50 ≤ ${goal.p50Max} ${unit}`,
  ]
  return parts.filter((part) => part !== "").join(", ")
}

export function besideTable({ rows, absent }: Beside): Table {
  return {
    head: ["", "n", "cold p50 ms", "p99", "exec p50 ms", "p99", "memory MB", "of the machine's MB"],
    rows: [
      ...rows.map(({ name, cycle, exec, memory }) => [
        name,
        `${cycle.n}, ${exec.n}, ${memory.count}`,
        ...[cycle.p50, cycle.p99, exec.p50, exec.p99, megabytes(memory.own), megabytes(memory.machine)].map(short),
      ]),
      ...absent.map(({ name, why }) => [name, why.split(":")[0] ?? why, "–", "–", "–", "–", "–", "–"]),
    ],
    words: new Set([0, 1]),
  }
}

export function growthTable({ rows }: Growth): Table {
  const times = ["create", "exec", "list", "get"] as const
  return {
    head: [
      "live",
      ...times.flatMap((name) => [`${name} p50 ms`, "p99"]),
      ...["sandbox MB", "of the machine's MB", "runner MB", "runner's open files"],
    ],
    rows: rows.map((row) => [
      ...[short(row.live), ...times.flatMap((name) => [short(row[name].p50), short(row[name].p99)])],
      ...[row.sandboxOwn, row.sandboxMachine, row.runnerResident].map((bytes) => short(megabytes(bytes))),
      short(row.runnerFds),
    ]),
    words: new Set(),
  }
}

export function describe(machine: Machine): string {
  const { date, commit, cpu, cores, memoryMB, kernel, node, crun, dataFs, loadAverage } = machine
  const load = loadAverage.join(" ")
  return `${date}, commit ${commit}: ${cpu} × ${cores}, ${memoryMB} MB, Linux ${kernel}, Node ${node}, crun ${crun ?? "–"}, data on ${dataFs}, load ${load}`
}
