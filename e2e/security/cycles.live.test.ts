import { readdirSync, readFileSync } from "node:fs"
import { afterAll, describe, expect, it } from "vitest"
import { join, resolve } from "node:path"
import { dist, Home } from "../runner/home.ts"
import { lastingLeaks, lookAt } from "../runner/machine.ts"
import { Runner } from "../runner/runner.ts"
import type { Talk } from "../runner/talk.ts"
import { record } from "./results.ts"

/**
 * WARREN_CYCLES=10000 for the long form, in which also the growth of memory means something. WARREN_TEST_PROGRAMS=FOLDER: a copy of `dist`,
 * where somebody else may build meanwhile.
 */
const cycles = Number(process.env["WARREN_CYCLES"] ?? 300)
const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist
const workers = 4
const isLong = cycles >= 10_000
/** Each n-th has an agent in it, which costs as much as ten others. */
const agentEvery = isLong ? 10 : 50
/** The first ones are for what is made once: code that is compiled, statements, journals, the last of which is full after 4,000. */
const warmShare = isLong ? 0.45 : 0.3
const windows = 20
const slopeBytesMax = 1024 * 1024
const descriptorsMore = 8
/** With room a collector waits for tens of megabytes before it looks again; what then grows is not what is kept. */
const collector = join(import.meta.dirname, "cycles/collector.mjs")
const tidy = { NODE_OPTIONS: `--import=${collector} --max-old-space-size=48 --max-semi-space-size=2` }
const tellEvery = 1_000

interface Sample {
  readonly cycle: number
  readonly residentBytes: number
  readonly descriptors: number
}

describe.skipIf(process.getuid?.() !== 0)("sessions that come and go", () => {
  const home = new Home()
  afterAll(() => home[Symbol.asyncDispose]())

  it(`leave nothing, ${cycles} times`, { timeout: 120_000 + cycles * 1_000 }, async () => {
    await using runner = await Runner.start(home, isLong ? tidy : {}, programs)
    const samples: Sample[] = []
    const count = { begun: 0, done: 0, agents: 0 }
    const started = performance.now()
    const work = async (): Promise<void> => {
      while (count.begun < cycles) {
        const round = count.begun++
        if (round % agentEvery === agentEvery - 1) await answer(runner.talk, round, ++count.agents % 2 === 0)
        else await live(runner.talk, round)
        const sample = sampleOf(runner.pid, ++count.done)
        samples.push(sample)
        if (sample.cycle % tellEvery === 0)
          console.log(`cycles: ${sample.cycle}, ${sample.residentBytes >> 20} MiB resident`)
      }
    }
    await Promise.all(Array.from({ length: workers }, work))
    const seconds = (performance.now() - started) / 1_000
    const settled = samples.slice(Math.floor(samples.length * warmShare))
    const slope = slopeOf(lowest(settled))
    const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(2)
    const [first, last] = [settled[0], settled.at(-1)]
    console.log(
      `cycles: ${cycles}, ${count.agents} with an agent, in ${seconds.toFixed(0)} s; resident ${megabytes(first?.residentBytes ?? 0)} then ${megabytes(last?.residentBytes ?? 0)} MiB, ` +
        `${megabytes(slope * 1_000)} MiB per 1000; descriptors ${first?.descriptors} then ${last?.descriptors}`,
    )
    expect(count.done).toBe(cycles)
    expect(last?.descriptors).toBeLessThanOrEqual((first?.descriptors ?? 0) + descriptorsMore)
    expect(await runner.talk.sessions()).toEqual([])
    expect(await lastingLeaks(home)).toEqual([])
    expect(lookAt(home)).toMatchObject({ ledger: [], folders: [], groups: [], egress: [], leased: [], scratch: [] })
    if (isLong) expect(slope * 1_000).toBeLessThan(slopeBytesMax)
    const growth = isLong ? { "MiB more per 1,000": megabytes(slope * 1_000) } : {}
    const descriptors = `${first?.descriptors} then ${last?.descriptors}`
    record("cycles", { cases: cycles, agents: count.agents, seconds: Math.round(seconds), ...growth, descriptors })
  })
})

async function live(talk: Talk, round: number): Promise<void> {
  const { id } = await talk.call("session.create", {})
  const { text } = await talk.run(id, `echo ${round} > ~/note; cat ~/note`)
  expect(text).toBe(`${round}\n`)
  await talk.call("session.delete", { id })
}

/** Asked one thing, and gone with its session: when it has answered, or in the middle of it. */
async function answer(talk: Talk, round: number, isCutOff: boolean): Promise<void> {
  const { id } = await talk.call("session.create", {})
  await talk.call("agent.start", { session: id, spec: { adapter: "scripted" } })
  const steps = [{ text: `said ${round}` }, ...(isCutOff ? [{ hang: true }] : [])]
  const asked = { session: id, text: `[[script:${JSON.stringify({ steps })}]]` }
  const { messageId } = await talk.call("agent.prompt", asked)
  let said = ""
  for await (const { item } of talk.feed("session.feed", { id, after: 0 })) {
    if (item.type === "message.part.text-delta") said += item.delta
    if (isCutOff && said === `said ${round}`) break
    if (item.type === "prompt" && item.prompt.messageId === messageId && item.prompt.state === "done") break
  }
  expect(said).toBe(`said ${round}`)
  await talk.call("session.delete", { id })
}

function sampleOf(pid: number, cycle: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const residentBytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
  return { cycle, residentBytes, descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

/** The lowest of each window: between two of them the collector has come by. */
function lowest(samples: readonly Sample[]): readonly Sample[] {
  const size = Math.max(1, Math.floor(samples.length / windows))
  const starts = Array.from({ length: Math.floor(samples.length / size) }, (_, n) => n * size)
  return starts.map((start) =>
    samples.slice(start, start + size).reduce((least, one) => (one.residentBytes < least.residentBytes ? one : least)),
  )
}

/** Bytes per cycle, by least squares. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length
  const [x, y] = [mean(samples.map(({ cycle }) => cycle)), mean(samples.map(({ residentBytes }) => residentBytes))]
  const over = samples.reduce((sum, one) => sum + (one.cycle - x) * (one.residentBytes - y), 0)
  const under = samples.reduce((sum, one) => sum + (one.cycle - x) ** 2, 0)
  return under === 0 ? 0 : over / under
}
