import { readdirSync } from "node:fs"
import { expect, test } from "vitest"
import type { Beside } from "./beside.ts"
import { promised } from "./goals.ts"
import type { Growth } from "./growth.ts"
import type { Result } from "./harness.ts"
import { draw } from "./page.ts"
import { toTable, type Outcome, type Report } from "./report.ts"

const machine: Report["machine"] = {
  ...{ date: "2026-11-16", commit: "0123456789ab", cpu: "a processor", cores: 2, memoryMB: 25_000, kernel: "6.1" },
  ...{ node: "20.20.2", crun: "1.8.1", dataFs: "ext4", loadAverage: [0.1, 0.2, 0.3] },
}
const resultOf = (name: string, ratio: number): Result => ({
  ...{ name, unit: "ms", n: 200, p50: 10, p95: 11, p99: 12, baseline: { name: "crun run", p50: 20 } },
  ...{ ratio, goal: { ratioMax: 0.4 }, met: ratio <= 0.4 },
})
const outcomes: readonly Outcome[] = [
  { kind: "measured", result: resultOf("sandbox.cold", 0.5) },
  { kind: "measured", result: resultOf("exec.true", 0.3) },
  { kind: "skipped", name: "shell.run", why: "no crun here" },
]
const times = (p50: number): { n: number; p50: number; p95: number; p99: number } => ({
  ...{ n: 60, p50, p95: p50 * 1.5, p99: p50 * 2 },
})
const besideRow = (name: string, scale: number): Beside["rows"][number] => ({
  ...{ name, how: "somehow", cycle: times(11 * scale), exec: times(scale) },
  memory: { count: 50, own: 340_000 * scale, machine: -1_000 },
})
const beside: Beside = {
  rows: [besideRow("warren, cold", 1), besideRow("crun", 2.3), besideRow("runc", 6)],
  absent: [{ name: "docker", why: "not installed: apt-get install docker.io" }],
}
const growthRow = (live: number): Growth["rows"][number] => ({
  ...{ live, create: times(12), exec: times(2 + live / 1_000), list: times(0.5), get: times(0.2) },
  ...{ runnerResident: 90_000_000 + live * 20_000, runnerFds: 40 + live, sandboxOwn: 340_000, sandboxMachine: 900_000 },
})
const growth: Growth = { rows: [1, 10, 100, 500, 1_000].map(growthRow) }
const whole: Report = { machine, outcomes, beside, growth }

test("every promise has a metric, and every metric it names is there", () => {
  const there = readdirSync("bench/metrics").map((file) => file.replace(/\.ts$/, ""))
  for (const { metrics } of promised) expect(metrics).not.toEqual([])
  expect(there).toEqual(expect.arrayContaining(promised.flatMap(({ metrics }) => metrics)))
})

test("the page says what was met, missed, skipped and not looked at", () => {
  const { text } = draw("benchmarks", "--full", whole)
  expect(text).toContain("2 metrics with a goal that were measured, 1 met it and 1 missed it: `sandbox.cold`.")
  expect(text).toMatch(/`sandbox\.cold` \| 0\.50 × crun run .*n = 200\) \| ratio ≤ 0\.4 \| \*\*MISSED\*\* \|/)
  expect(text).toMatch(/`exec\.true` .*\| met \|/)
  expect(text).toMatch(/`shell\.run` .* skipped: no crun here \|/)
  expect(text).toMatch(/`sandbox\.memory` .* not measured \|/)
  expect(text).toContain("2026-11-16, commit 0123456789ab: a processor × 2")
})

test("every picture the page shows is drawn, and shows numbers only", () => {
  const { text, plots } = draw("benchmarks", "--full", whole)
  const shown = [...text.matchAll(/\]\(benchmarks(.*?)\.svg\)/g)].map(([, suffix]) => suffix)
  expect(shown).toEqual([...plots.keys()])
  expect(shown).toEqual(["", "-beside", "-growth"])
  for (const plot of plots.values()) {
    expect(plot).toMatch(/^<svg [^]*<\/svg>\n$/)
    expect(plot).not.toMatch(/NaN|Infinity|undefined/)
    expect(plot).toContain("prefers-color-scheme: dark")
  }
})

test("who is not installed has a row that says so", () => {
  expect(draw("b", "", whole).text).toMatch(/^\| docker \| not installed \| – /m)
  expect(toTable(whole)).toMatch(/^docker +not installed +– /m)
})

test("a run of a few metrics has a page, too; what ended early says where", () => {
  const { text, plots } = draw("b", "--only a", { machine, outcomes: [] })
  expect([...plots.keys()]).toEqual([""])
  expect(text).toContain("Of 0 metrics")
  const stopped = draw("b", "", { ...whole, growth: { ...growth, stopped: "with 700 of 1000 live: no more files" } })
  expect(stopped.text).toContain("It stopped with 700 of 1000 live: no more files")
})
