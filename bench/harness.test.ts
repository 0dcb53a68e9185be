import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { measure, resultOf } from "./harness.ts"
import { describeMachine } from "./machine.ts"
import { defineMetric, type Context } from "./metric.ts"
import { toJson, toTable, type Outcome } from "./report.ts"
import { optionsOf, select } from "./selection.ts"
import { meets, summarize } from "./statistics.ts"
import { Skipped, withWorkbench } from "./workbench.ts"

const home = await mkdtemp(join(tmpdir(), "warren-bench-test-"))
afterAll(() => rm(home, { recursive: true, force: true }))

const bench = <T>(work: (context: Context) => Promise<T>): Promise<T> =>
  withWorkbench({ home, peers: home, signal: new AbortController().signal, isQuick: true }, work)
const noProgress = (): void => undefined
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1)

describe("statistics", () => {
  test("percentiles are values that were measured", () => {
    expect(summarize(upTo(100).toReversed())).toEqual({ n: 100, p50: 50, p95: 95, p99: 99 })
    expect(summarize([3, 1, 2])).toEqual({ n: 3, p50: 2, p95: 3, p99: 3 })
    expect(summarize([7])).toEqual({ n: 1, p50: 7, p95: 7, p99: 7 })
  })

  test("where higher is better, the bad end is the low one", () => {
    expect(summarize(upTo(100), true)).toEqual({ n: 100, p50: 51, p95: 6, p99: 2 })
  })

  test("goals", () => {
    expect(meets({ ratioMax: 2 }, 10, 2)).toBe(true)
    expect(meets({ ratioMax: 2 }, 10, 2.01)).toBe(false)
    expect(meets({ ratioMin: 0.5 }, 10, 0.4)).toBe(false)
    expect(meets({ p50Max: 1.5 }, 1.4, null)).toBe(true)
    expect(meets({ p50Max: 1.5 }, 1.6, null)).toBe(false)
    expect(meets({ ratioMax: 2 }, 10, null)).toBe(false)
  })
})

describe("--only", () => {
  const names = ["frame.throughput", "sandbox.create", "sandbox.create.cold", "sandbox.exec"]

  test.each([
    [[], names],
    [["sandbox."], names.slice(1)],
    [["sandbox.create"], ["sandbox.create"]],
    [
      ["frame.throughput", "sandbox.exec"],
      ["frame.throughput", "sandbox.exec"],
    ],
    [["fra"], ["frame.throughput"]],
  ])("%j", (only, expected) => expect(select(names, only)).toEqual(expected))

  test("is given as often as one likes", () => {
    expect(optionsOf(["--only", "a", "--quick", "--only=b."])).toEqual({ only: ["a", "b."], quick: true })
    expect(() => optionsOf(["--fast"])).toThrow(/--fast[^]*Usage/)
  })

  test("all of it, or little of it, and not for long", () => {
    expect(optionsOf(["--full", "--seconds", "2.5"])).toEqual({ full: true, seconds: "2.5" })
    expect(() => optionsOf(["--full", "--quick"])).toThrow(/opposites[^]*Usage/)
    expect(() => optionsOf(["--seconds", "soon"])).toThrow(/--seconds wants a number[^]*Usage/)
  })

  test("what is not there is an error that says what is", () => {
    expect(() => select(names, ["nope", "sandbox."])).toThrow(/no metric nope[^]*sandbox\.exec/)
  })
})

describe("measuring", () => {
  test("takes turns: baseline, then ours, again and again", async () => {
    const order: string[] = []
    const metric = defineMetric({
      name: "a.b",
      unit: "ms",
      samples: { full: 1, quick: 4 },
      perTurn: 2,
      prepare: () => Promise.resolve(order),
      run: (state) => state.push("ours") && 4,
      baseline: { name: "theirs", run: (state) => state.push("theirs") && 2 },
    })
    const result = await bench((context) => measure(metric, context, noProgress))
    const turn = ["theirs", "theirs", "ours", "ours"]
    expect(order.slice(-8)).toEqual([...turn, ...turn])
    expect(result).toEqual({
      ...{ name: "a.b", unit: "ms", n: 4, p50: 4, p95: 4, p99: 4 },
      ...{ baseline: { name: "theirs", p50: 2 }, ratio: 2 },
    })
  })

  test("what is measured once is not warmed up, and needs no baseline", async () => {
    let runs = 0
    const metric = defineMetric({
      name: "a.b",
      unit: "MB",
      samples: { full: 1, quick: 1 },
      goal: { p50Max: 1 },
      prepare: () => Promise.resolve(),
      run: () => ++runs,
    })
    const result = await bench((context) => measure(metric, context, noProgress))
    expect(result).toMatchObject({ n: 1, p50: 1, baseline: null, ratio: null, met: true })
  })

  test("leaves nothing behind, also when it fails or is skipped", async () => {
    const released: string[] = []
    const attempt = bench((context) => {
      context.scope.defer(() => void released.push("peer"))
      return context.skip("no crun")
    })
    await expect(attempt).rejects.toThrow(new Skipped("no crun"))
    expect(released).toEqual(["peer"])
    expect(await readdir(home)).toEqual([])
  })

  test("ends when it has had the time it may take, but not before there is something", async () => {
    const metric = defineMetric({ name: "a", unit: "ms", prepare: () => Promise.resolve(), run: () => 1 })
    const result = await bench((context) => measure(metric, { ...context, patienceMs: 1 }, noProgress))
    expect(result.n).toBe(3)
  })

  test("stops when told", async () => {
    const signal = AbortSignal.abort(new Error("enough"))
    const metric = defineMetric({ name: "a", unit: "ms", prepare: () => Promise.resolve(), run: () => 1 })
    const run = bench((context) => measure(metric, { ...context, signal }, noProgress))
    await expect(run).rejects.toThrow("enough")
  })
})

describe("output", () => {
  const definition = { name: "frame.throughput", unit: "MB/s", isHigherBetter: true, goal: { ratioMin: 0.5 } }
  const result = resultOf({ ...definition, baselineName: "raw" }, [100, 120, 140], [400, 400, 400])
  const outcomes: Outcome[] = [
    { kind: "measured", result },
    { kind: "skipped", name: "sandbox.create", why: "no crun here" },
  ]

  test("JSON has the agreed shape", async () => {
    const machine = await describeMachine(home)
    expect(toJson({ machine, outcomes: outcomes.slice(0, 1) })).toEqual({
      machine,
      metrics: [
        {
          ...{ name: "frame.throughput", unit: "MB/s", n: 3, p50: 120, p95: 100, p99: 100 },
          ...{ baseline: { name: "raw", p50: 400 }, ratio: 0.3 },
          ...{ better: "higher", goal: { ratioMin: 0.5 }, met: false },
        },
      ],
    })
    expect(toJson({ machine, outcomes })).toMatchObject({ skipped: [{ name: "sandbox.create", why: "no crun here" }] })
  })

  test("the machine is described", async () => {
    const machine = await describeMachine(home)
    expect(machine).toMatchObject({
      node: process.versions.node,
      loadAverage: [expect.any(Number), expect.any(Number), expect.any(Number)],
    })
    expect(machine.cores).toBeGreaterThan(0)
    expect(machine.dataFs).toMatch(/^\w+/)
  })

  test("the table shows misses and says why something was skipped", async () => {
    const table = toTable({ machine: await describeMachine(home), outcomes })
    expect(table).toMatch(/frame\.throughput +MB\/s ↑ +3 +120 .* 0\.30 +ratio ≥ 0\.5 +MISSED/)
    expect(table).toContain("sandbox.create  skipped: no crun here")
  })
})
