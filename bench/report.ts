import type { Result } from "./harness.ts"
import type { Machine } from "./machine.ts"

export type Outcome =
  | { readonly kind: "measured"; readonly result: Result }
  | { readonly kind: "skipped" | "failed"; readonly name: string; readonly why: string }

/** What is kept of a run. A skipped metric is named, so that its absence is not taken for an oversight. */
export function toJson(machine: Machine, outcomes: readonly Outcome[]): object {
  const metrics = outcomes.flatMap((outcome) => (outcome.kind === "measured" ? [outcome.result] : []))
  const skipped = outcomes.flatMap((outcome) =>
    outcome.kind === "measured" ? [] : [{ name: outcome.name, why: outcome.why }],
  )
  return { machine, metrics, ...(skipped.length > 0 ? { skipped } : {}) }
}

export const head = ["metric", "unit", "n", "p50", "p95", "p99", "baseline p50", "ratio", "goal", ""]
const textColumns = new Set([0, 1, 8, 9])

/** The run as a table for a person. */
export function toTable(machine: Machine, outcomes: readonly Outcome[]): string {
  const rows = [head, ...outcomes.flatMap((outcome) => (outcome.kind === "measured" ? [rowOf(outcome.result)] : []))]
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (textColumns.has(i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  ")
  const others = outcomes.flatMap((one) => (one.kind === "measured" ? [] : [`${one.name}  ${one.kind}: ${one.why}`]))
  return [describe(machine), "", ...rows.map((cells) => line(cells).trimEnd()), ...others].join("\n")
}

export function rowOf(result: Result): string[] {
  const unit = result.better === "higher" ? `${result.unit} ↑` : result.unit
  const figures = [result.n, result.p50, result.p95, result.p99].map(String)
  const { baseline, ratio, met } = result
  const verdict = met === undefined ? "" : met ? "met" : "MISSED"
  return [
    result.name,
    unit,
    ...figures,
    baseline ? String(baseline.p50) : "–",
    ratio === null ? "–" : ratio.toFixed(2),
    goalOf(result),
    verdict,
  ]
}

function goalOf({ goal, unit }: Result): string {
  const parts = [
    goal?.ratioMax === undefined ? "" : `ratio ≤ ${goal.ratioMax}`,
    goal?.ratioMin === undefined ? "" : `ratio ≥ ${goal.ratioMin}`,
    goal?.p50Max === undefined ? "" : `p50 ≤ ${goal.p50Max} ${unit}`,
  ]
  return parts.filter((part) => part !== "").join(", ")
}

export function describe(machine: Machine): string {
  const { cpu, cores, memoryMB, kernel, node, crun, dataFs, loadAverage } = machine
  const load = loadAverage.join(" ")
  return `${cpu} × ${cores}, ${memoryMB} MB, Linux ${kernel}, Node ${node}, crun ${crun ?? "–"}, data on ${dataFs}, load ${load}`
}
