import { readdirSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { elapsedMs, type Context } from "./metric.ts"
import { Runner } from "./runner.ts"
import { availableBytes, residentBytes } from "./sandbox-memory.ts"
import { inParallel } from "./sandboxes.ts"
import { summarize, type Summary } from "./statistics.ts"

/** What it costs when so many sessions as anybody gets them live, each with a sandbox in which only its init sleeps. Times in milliseconds, sizes in bytes. */
export interface GrowthRow {
  readonly live: number
  readonly create: Summary
  readonly exec: Summary
  readonly list: Summary
  readonly get: Summary
  readonly runnerResident: number
  readonly runnerFds: number
  /** Of one sandbox: its own pages and what the kernel counts in its group. */
  readonly sandboxOwn: number
  /** Of one sandbox: how much less memory the machine has available, runner included. */
  readonly sandboxMachine: number
}

export interface Growth {
  readonly rows: readonly GrowthRow[]
  /** Why it ended before the last size. */
  readonly stopped?: string
}

const sizes: Readonly<Record<"full" | "quick", readonly number[]>> = {
  full: [1, 10, 100, 500, 1_000],
  quick: [1, 10],
}
interface Samples {
  readonly creates: number
  readonly execs: number
  readonly asks: number
}
const samples: Readonly<Record<"full" | "quick", Samples>> = {
  full: { creates: 100, execs: 300, asks: 300 },
  quick: { creates: 10, execs: 20, asks: 20 },
}
/** Taken first and thrown away: compilers and caches settle meanwhile. */
const warmups = 20
const settleMs = 1_000
/** What one figure of one size may take at most. */
const defaultPatienceMs = 10_000
const samplesMin = 3
const atOnce = 8
/** What one look at a list shows. */
const pageSize = 50

/** One runner that more and more sessions live in. All of them are gone afterwards, also when it is interrupted. */
export async function measureGrowth(context: Context, onStep: (done: number, wanted: number) => void): Promise<Growth> {
  const runner = await Runner.start(context, { WARREN_POOL_MB: "0" })
  const crowd = new Crowd(runner, context)
  const size = context.isQuick ? "quick" : "full"
  for (let at = 0; at < warmups; at++) await crowd.cycle()
  await sleep(settleMs)
  const emptyBytes = availableBytes()
  const rows: GrowthRow[] = []
  for (const live of sizes[size]) {
    try {
      await crowd.growTo(live)
      await sleep(settleMs)
      rows.push(await crowd.measure(samples[size], emptyBytes))
    } catch (failure) {
      context.signal.throwIfAborted()
      return { rows, stopped: `with ${crowd.live} of ${live} live: ${String(failure)}` }
    }
    onStep(live, sizes[size].at(-1) ?? live)
  }
  return { rows }
}

class Crowd {
  readonly #runner: Runner
  readonly #signal: AbortSignal
  readonly #patienceMs: number
  readonly #ids: string[] = []

  constructor(runner: Runner, { signal, patienceMs = defaultPatienceMs }: Context) {
    this.#runner = runner
    this.#signal = signal
    this.#patienceMs = patienceMs
  }

  get live(): number {
    return this.#ids.length
  }

  async growTo(live: number): Promise<void> {
    await inParallel(atOnce, live - this.#ids.length, async () => {
      this.#signal.throwIfAborted()
      this.#ids.push((await this.#runner.create()).id)
    })
  }

  /** How long a create takes; what it made is gone afterwards. */
  async cycle(): Promise<number> {
    let made = ""
    const ms = await elapsedMs(async () => {
      made = (await this.#runner.create()).id
    })
    await this.#runner.execTrue(made)
    await this.#runner.delete(made)
    return ms
  }

  async measure({ creates, execs, asks }: Samples, emptyBytes: number): Promise<GrowthRow> {
    const one = this.#anyone()
    const { own, kernel } = await this.#runner.memoryOfAll(one)
    const machine = emptyBytes - availableBytes()
    const runner = this.#runner
    return {
      live: this.live,
      sandboxOwn: (own + kernel) / this.live,
      sandboxMachine: machine / this.live,
      create: await this.#times(creates, () => this.cycle()),
      exec: await this.#times(execs, () => elapsedMs(() => runner.execTrue(this.#anyone()))),
      list: await this.#times(asks, () => elapsedMs(() => runner.call("session.list", { limit: pageSize }))),
      get: await this.#times(asks, () => elapsedMs(() => runner.call("session.get", { id: this.#anyone() }))),
      runnerResident: residentBytes(runner.pid),
      runnerFds: readdirSync(`/proc/${runner.pid}/fd`).length,
    }
  }

  async #times(count: number, take: () => Promise<number>): Promise<Summary> {
    const taken: number[] = []
    const deadline = performance.now() + this.#patienceMs
    for (let at = 0; at < count; at++) {
      this.#signal.throwIfAborted()
      if (at >= samplesMin && performance.now() > deadline) break
      taken.push(await take())
    }
    return summarize(taken)
  }

  #anyone(): string {
    return this.#ids[Math.floor(Math.random() * this.#ids.length)] ?? ""
  }
}
