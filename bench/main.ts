import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { messageOf } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"
import { measureBeside } from "./beside.ts"
import { measureGrowth } from "./growth.ts"
import { measure } from "./harness.ts"
import { describeMachine } from "./machine.ts"
import type { Context, Metric } from "./metric.ts"
import { writePage } from "./page.ts"
import { progressOf } from "./progress.ts"
import { toJson, toTable, type Outcome, type Report } from "./report.ts"
import { Misasked, optionsOf, select } from "./selection.ts"
import { Skipped, withWorkbench } from "./workbench.ts"

type Bench = Parameters<typeof withWorkbench>[0]
type Step = (done: number, wanted: number) => void

/** What is no metric with a baseline, but a table of its own. */
const studies = ["beside", "growth"]

/** Measures what was asked for. `programs` is where the bundled metrics and peers are. Resolves with the exit code. */
export async function main(args: readonly string[], programs: string): Promise<number> {
  const files = (await readdir(join(programs, "metrics"))).filter((file) => file.endsWith(".js")).toSorted()
  const available = [...files.map((file) => file.slice(0, -".js".length)), ...studies]
  try {
    const { only = [], quick = false, seconds, json, page } = optionsOf(args)
    const patienceMs = seconds === undefined ? undefined : Number(seconds) * 1_000
    const names = select(available, only)
    return await measureAll({ names, isQuick: quick, patienceMs, json, page, programs, command: args.join(" ") })
  } catch (thrown) {
    if (!(thrown instanceof Misasked)) throw thrown
    console.error(thrown.message)
    return 2
  }
}

interface Plan {
  readonly names: readonly string[]
  readonly isQuick: boolean
  readonly patienceMs: number | undefined
  readonly json: string | undefined
  readonly page: string | undefined
  readonly programs: string
  readonly command: string
}

async function measureAll({ names, isQuick, patienceMs, json, page, programs, command }: Plan): Promise<number> {
  const { home } = load({ home: homeSetting }, process.env)
  await mkdir(home, { recursive: true, mode: 0o700 })
  const machine = await describeMachine(home)
  const stop = new AbortController()
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort())
  const bench = { home, peers: join(programs, "peers"), signal: stop.signal, isQuick, patienceMs }

  const report = await reportOf(names, machine, bench, programs)
  console.log(toTable(report))
  if (json !== undefined) await writeFile(json, `${JSON.stringify(toJson(report), null, 2)}\n`)
  if (page !== undefined) await writePage(page, command, report)
  return report.outcomes.some((outcome) => outcome.kind === "failed") || stop.signal.aborted ? 1 : 0
}

async function reportOf(
  names: readonly string[],
  machine: Report["machine"],
  bench: Bench,
  programs: string,
): Promise<Report> {
  const outcomes: Outcome[] = []
  const study = async <T>(name: string, work: (context: Context, step: Step) => Promise<T>): Promise<T | undefined> => {
    if (!names.includes(name) || bench.signal.aborted) return undefined
    const found = await attempt(name, bench, work)
    if ("value" in found) return found.value
    outcomes.push(found)
    return undefined
  }
  // Studies first: whoever stops it early has them.
  const beside = await study("beside", measureBeside)
  const growth = await study("growth", measureGrowth)
  for (const name of names.filter((one) => !studies.includes(one))) {
    if (bench.signal.aborted) break
    const metric = await openMetric(programs, name)
    const found = await attempt(name, bench, (context, step) => measure(metric, context, step))
    outcomes.push("value" in found ? { kind: "measured", result: found.value } : found)
  }
  return { machine, beside, growth, outcomes }
}

async function openMetric(programs: string, name: string): Promise<Metric> {
  const file = pathToFileURL(join(programs, "metrics", `${name}.js`)).href
  const { metric } = (await import(file)) as { metric: Metric }
  if (metric.name !== name) throw new Error(`bench/metrics/${name}.ts calls itself ${metric.name}`)
  return metric
}

/** Does it on a workbench of its own; why it could not is an outcome, too. */
async function attempt<T>(
  name: string,
  bench: Bench,
  work: (context: Context, step: Step) => Promise<T>,
): Promise<{ readonly value: T } | Exclude<Outcome, { kind: "measured" }>> {
  const progress = progressOf(name)
  const started = performance.now()
  try {
    return { value: await withWorkbench(bench, (context) => work(context, progress.step)) }
  } catch (thrown) {
    return { kind: thrown instanceof Skipped ? "skipped" : "failed", name, why: messageOf(thrown) }
  } finally {
    progress.end((performance.now() - started) / 1_000)
  }
}
