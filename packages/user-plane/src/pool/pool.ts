import { readFileSync } from "node:fs"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { ask } from "@warren/drivers/init/ask.ts"
import { InitHello } from "@warren/protocol/init.ts"
import { keyOf, type Plan } from "../sessions/plan.ts"
import type { Live, Sandboxes } from "../sessions/sandboxes.ts"
import { Demand, wanted } from "./demand.ts"

export interface PoolOptions {
  readonly sandboxes: Sandboxes
  readonly clock: Clock
  readonly log: Log
  /** What all waiting sandboxes together may cost. 0: none wait. */
  readonly budgetBytes: number
  /** The plan of sessions that ask for nothing special: some are always ready for it. */
  readonly usual?: Plan | undefined
  readonly usualLeast?: number
}

/** Owner of a waiting sandbox in the ledger. */
export const poolOwner = "pool"

/** Measured: 0.3 MB each when 200 wait, kernel included; some have a proxy. */
const sandboxBytes = 1024 * 1024
const fillsAtOnce = 2
/** After the last one was taken: those who took them have work to do first. */
const calmMs = 40
const tickMs = 10_000
const checkMs = 1_000
/** Below this share of the machine's memory nothing waits. */
const leastFreeShare = 0.05
/** Failed fills in a row until the next tick. */
const failuresMax = 3

class Shelf {
  readonly plan: Plan
  readonly demand = new Demand()
  readonly ready: Live[] = []
  filling = 0
  failures = 0
  /** Nobody asks for its plan any more. */
  isGivenUp = false
  hits = 0
  misses = 0

  constructor(plan: Plan) {
    this.plan = plan
  }
}

/** Sandboxes started ahead of need, per plan. One is given to one session and never comes back. */
export class Pool {
  readonly #options: PoolOptions
  readonly #shelves = new Map<string, Shelf>()
  readonly #stop = new AbortController()
  readonly #fills = new Set<Promise<void>>()
  readonly #tick: NodeJS.Timeout
  #calm: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined

  constructor(options: PoolOptions) {
    this.#options = options
    if (options.usual) this.#shelf(options.usual)
    this.#tick = setInterval(() => {
      this.#balance()
      this.#checking ??= this.check().finally(() => (this.#checking = undefined))
    }, tickMs)
    this.#tick.unref()
  }

  /** One that waits and runs, or undefined: then the caller makes one. */
  take(plan: Plan, signal: AbortSignal): Live | undefined {
    // One that waits would hold somebody's folder, which could then not be deleted though nobody uses it.
    if (plan.workspace !== undefined) return undefined
    const shelf = this.#shelf(plan)
    shelf.demand.note(this.#options.clock.monotonic())
    this.#balanceSoon()
    signal.throwIfAborted()
    for (let live = shelf.ready.pop(); live; live = shelf.ready.pop()) {
      // Asking it anything would cost as much as the first command; whether it answers was asked a moment ago.
      if (live.sandbox.isRunning()) {
        shelf.hits++
        return live
      }
      this.#drop(live)
    }
    shelf.misses++
    return undefined
  }

  /** Of one that was taken and not used after all. */
  giveBack(live: Live): void {
    this.add(live)
  }

  /** One that nobody has used. */
  add(live: Live): void {
    if (this.#stop.signal.aborted) return this.#drop(live)
    const shelf = this.#shelf(live.plan)
    shelf.ready.push(live)
    void live.sandbox.ended.then(() => {
      const at = shelf.ready.indexOf(live)
      if (at < 0) return
      shelf.ready.splice(at, 1)
      this.#drop(live)
      this.#balanceSoon()
    })
  }

  list(): { key: string; image: string; ready: number; wanted: number; hits: number; misses: number }[] {
    return [...this.#shelves].map(([key, shelf]) => ({
      key,
      image: shelf.plan.image,
      ready: shelf.ready.length,
      wanted: this.#wanted(shelf),
      hits: shelf.hits,
      misses: shelf.misses,
    }))
  }

  /** Fills what is empty now instead of at the next need. */
  start(): void {
    this.#balance()
  }

  /** Nothing that waits needs this image when it resolves; more is made when it is asked for again. */
  async release(image: string): Promise<void> {
    const isOf = ([, { plan }]: [string, Shelf]): boolean => plan.image === image
    while ([...this.#shelves].some(isOf)) {
      for (const [key, shelf] of [...this.#shelves].filter(isOf)) {
        this.#shelves.delete(key)
        shelf.isGivenUp = true
        for (const live of shelf.ready.splice(0)) this.#drop(live)
      }
      // One that was being made comes to a shelf of its own, and goes with the next look.
      await Promise.all(this.#fills)
    }
  }

  /** What waits goes: nobody knows whether there will be a next runner. One that is killed leaves it, and its successor takes it up. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#tick)
    clearTimeout(this.#calm)
    this.#stop.abort()
    await this.#checking
    await Promise.all(this.#fills)
    for (const shelf of this.#shelves.values()) {
      for (const live of shelf.ready.splice(0)) this.#drop(live)
    }
    await Promise.all(this.#fills)
  }

  /** What waits and does not answer goes. */
  async check(): Promise<void> {
    for (const shelf of this.#shelves.values()) {
      for (const live of [...shelf.ready]) {
        if (this.#stop.signal.aborted) return
        const isGood = await answers(live)
        const at = shelf.ready.indexOf(live)
        if (isGood || at < 0) continue
        shelf.ready.splice(at, 1)
        this.#drop(live)
        this.#balanceSoon()
      }
    }
  }

  #shelf(plan: Plan): Shelf {
    const key = keyOf(plan)
    const known = this.#shelves.get(key)
    if (known) return known
    const shelf = new Shelf(plan)
    this.#shelves.set(key, shelf)
    return shelf
  }

  #wanted(shelf: Shelf): number {
    if (shelf.isGivenUp) return 0
    const { usual, usualLeast = 0, budgetBytes, clock } = this.#options
    const others = [...this.#shelves.values()].filter((other) => other !== shelf)
    const taken = others.reduce((sum, { ready, filling }) => sum + ready.length + filling, 0)
    const roomFor = isShortOfMemory() ? 0 : Math.floor(budgetBytes / sandboxBytes) - taken
    const least = usual && keyOf(usual) === keyOf(shelf.plan) ? usualLeast : 0
    return wanted(shelf.demand.peak(clock.monotonic()), least, roomFor)
  }

  #balanceSoon(): void {
    clearTimeout(this.#calm)
    this.#calm = setTimeout(() => this.#balance(), calmMs)
    this.#calm.unref()
  }

  #balance(): void {
    if (this.#stop.signal.aborted) return
    for (const [key, shelf] of this.#shelves) {
      shelf.failures = 0
      const want = this.#wanted(shelf)
      for (const live of shelf.ready.splice(want)) this.#drop(live)
      while (shelf.filling < fillsAtOnce && shelf.ready.length + shelf.filling < want) this.#fill(shelf)
      const isUsual = this.#options.usual && key === keyOf(this.#options.usual)
      if (want === 0 && shelf.filling === 0 && !isUsual && shelf.demand.peak(this.#options.clock.monotonic()) === 0)
        this.#shelves.delete(key)
    }
  }

  #fill(shelf: Shelf): void {
    shelf.filling++
    const work = this.#options.sandboxes
      .make(shelf.plan, poolOwner, this.#stop.signal)
      .then((live) => {
        failpoint("pool/filled")
        shelf.failures = 0
        this.add(live)
      })
      .catch((failure: unknown) => {
        shelf.failures++
        if (!this.#stop.signal.aborted)
          this.#options.log("warn", "pool.fill", { image: shelf.plan.image, message: messageOf(failure) })
      })
      .finally(() => {
        shelf.filling--
        this.#fills.delete(work)
        const isWanted = shelf.ready.length + shelf.filling < this.#wanted(shelf)
        if (isWanted && shelf.failures < failuresMax && !this.#stop.signal.aborted) this.#fill(shelf)
      })
    this.#fills.add(work)
  }

  #drop(live: Live): void {
    const work = this.#options.sandboxes
      .destroy(live.id, live.plan, live.wayOut)
      .catch((failure: unknown) => this.#options.log("warn", "pool.drop", { message: messageOf(failure) }))
      .finally(() => this.#fills.delete(work))
    this.#fills.add(work)
  }
}

/** A sandbox that does not answer is not handed out. */
async function answers({ sandbox }: Live): Promise<boolean> {
  const hello = ask(sandbox, { op: "hello" }, InitHello, AbortSignal.timeout(checkMs))
  return hello.then(
    () => true,
    () => false,
  )
}

function isShortOfMemory(): boolean {
  const text = readFileSync("/proc/meminfo", "utf8")
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0)
  return bytes("MemAvailable") < bytes("MemTotal") * leastFreeShare
}
