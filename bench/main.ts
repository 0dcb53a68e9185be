import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { messageOf } from "@warren/base/fault.ts"
import { load } from "@warren/base/settings.ts"
import { homeSetting } from "@warren/protocol/places.ts"
import { measure } from "./harness.ts"
import { describeMachine } from "./machine.ts"
import type { Metric } from "./metric.ts"
import { writePage } from "./page.ts"
import { progressOf } from "./progress.ts"
import { toJson, toTable, type Outcome } from "./report.ts"
import { Misasked, optionsOf, select } from "./selection.ts"
import { Skipped, withWorkbench } from "./workbench.ts"

/** Measures what was asked for. `programs` is where the bundled metrics and peers are. Resolves with the exit code. */
export async function main(args: readonly string[], programs: string): Promise<number> {
  const files = (await readdir(join(programs, "metrics"))).filter((file) => file.endsWith(".js")).toSorted()
  const available = files.map((file) => file.slice(0, -".js".length))
  try {
    const { only = [], quick = false, json, page } = optionsOf(args)
    return await measureAll({ names: select(available, only), isQuick: quick, json, page, programs })
  } catch (thrown) {
    if (!(thrown instanceof Misasked)) throw thrown
    console.error(thrown.message)
    return 2
  }
}

interface Plan {
  readonly names: readonly string[]
  readonly isQuick: boolean
  readonly json: string | undefined
  readonly page: string | undefined
  readonly programs: string
}

async function measureAll({ names, isQuick, json, page, programs }: Plan): Promise<number> {
  const { home } = load({ home: homeSetting }, process.env)
  await mkdir(home, { recursive: true, mode: 0o700 })
  const machine = await describeMachine(home)
  const stop = new AbortController()
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort())
  const options = { home, peers: join(programs, "peers"), signal: stop.signal, isQuick }

  const outcomes: Outcome[] = []
  for (const name of names) {
    if (stop.signal.aborted) break
    outcomes.push(await outcomeOf(await openMetric(programs, name), options))
  }
  console.log(toTable(machine, outcomes))
  if (json !== undefined) await writeFile(json, `${JSON.stringify(toJson(machine, outcomes), null, 2)}\n`)
  if (page !== undefined) await writePage(page, machine, outcomes)
  return outcomes.some((outcome) => outcome.kind === "failed") || stop.signal.aborted ? 1 : 0
}

async function openMetric(programs: string, name: string): Promise<Metric> {
  const file = pathToFileURL(join(programs, "metrics", `${name}.js`)).href
  const { metric } = (await import(file)) as { metric: Metric }
  if (metric.name !== name) throw new Error(`bench/metrics/${name}.ts calls itself ${metric.name}`)
  return metric
}

async function outcomeOf(metric: Metric, options: Parameters<typeof withWorkbench>[0]): Promise<Outcome> {
  const progress = progressOf(metric.name)
  try {
    return {
      kind: "measured",
      result: await withWorkbench(options, (context) => measure(metric, context, progress.step)),
    }
  } catch (thrown) {
    const kind = thrown instanceof Skipped ? "skipped" : "failed"
    return { kind, name: metric.name, why: messageOf(thrown) }
  } finally {
    progress.end()
  }
}
