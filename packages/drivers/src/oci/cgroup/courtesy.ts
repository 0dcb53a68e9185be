import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import type { Cgroup } from "./cgroup.ts"

const lookMs = 250
/** A look at many groups takes longer, and comes as much less often. */
const restPerLook = 100
/** Of the time somebody waited for a processor: below this nobody minds. */
const pressedShare = 0.05
/** Of a processor: less than this is no part of a quarrel. */
const busyShare = 0.05
/** Of what each would have if all who are busy had the same: whoever takes most of it, and who little. */
const greedyShare = 0.75
const modestShare = 0.25

interface Seen {
  readonly cpuUs: number
  readonly atMs: number
}

/**
 * Sandboxes that take a whole processor for themselves let the others pass: a command of a neighbour runs at once, and not when the next
 * tick ends somebody's turn. Where nobody waits they lose nothing, and among themselves they share as before.
 */
export class Courtesy implements Disposable {
  readonly #groups: () => Iterable<Cgroup>
  readonly #pressureUs: () => number | undefined
  #seen = new Map<Cgroup, Seen>()
  #pressure: Seen
  #timer: NodeJS.Timeout

  /** `groups`: of the sandboxes that run. */
  constructor(groups: () => Iterable<Cgroup>, pressureUs = machinePressureUs) {
    this.#groups = groups
    this.#pressureUs = pressureUs
    this.#pressure = { cpuUs: pressureUs() ?? 0, atMs: performance.now() }
    this.#timer = this.#after(lookMs)
  }

  /** Judges by what happened since the last look. */
  look(nowMs = performance.now()): void {
    const isPressed = this.#isPressed(nowMs)
    const seen = new Map<Cgroup, Seen>()
    const shares = new Map<Cgroup, number>()
    for (const group of isPressed ? this.#groups() : []) {
      const now = { cpuUs: group.cpuUs(), atMs: nowMs }
      seen.set(group, now)
      const before = this.#seen.get(group)
      if (before) shares.set(group, shareOf(before, now))
    }
    this.#seen = seen
    judge(shares)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #isPressed(nowMs: number): boolean {
    const waitedUs = this.#pressureUs()
    // The kernel does not say.
    if (waitedUs === undefined) return true
    const now = { cpuUs: waitedUs, atMs: nowMs }
    const share = shareOf(this.#pressure, now)
    this.#pressure = now
    return share >= pressedShare
  }

  #after(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const begun = performance.now()
      this.look()
      this.#timer = this.#after(Math.max(lookMs, (performance.now() - begun) * restPerLook))
    }, ms).unref()
  }
}

function judge(shares: ReadonlyMap<Cgroup, number>): void {
  const busy = [...shares.values()].filter((share) => share >= busyShare).length
  const fair = Math.min(1, availableParallelism() / Math.max(busy, 1))
  for (const [{ priority }, share] of shares) {
    if (share >= fair * greedyShare) priority.isLow = true
    // Also one that was starved: then it has its turn.
    else if (share < fair * modestShare) priority.isLow = false
  }
}

function shareOf(before: Seen, now: Seen): number {
  return (now.cpuUs - before.cpuUs) / 1_000 / (now.atMs - before.atMs)
}

/** How long, since the machine began, somebody waited for a processor. */
function machinePressureUs(): number | undefined {
  try {
    return Number(/^some .*total=(\d+)/m.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1])
  } catch {
    return undefined
  }
}
