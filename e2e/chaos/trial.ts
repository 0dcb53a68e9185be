import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"
import { faultOf } from "./cases.ts"
import { strangers } from "./facts.ts"
import { Story, type Chapter } from "./story.ts"

/** Where a program dies, at which pass; or where what is under way fails. */
export interface Strike {
  readonly name: string
  readonly pass: number
  readonly deed?: "error"
}

export interface Told {
  readonly struck: number
  /** The step that was cut off. */
  readonly cut: string | undefined
  readonly readyMs: readonly number[]
  /** Everything that was passed, in order. */
  readonly passed: readonly string[]
  readonly wrong: readonly string[]
}

const pool = { WARREN_POOL_LEAST: "1", WARREN_POOL_MB: "2" }

/** Where a chapter is lived. */
export interface Place {
  readonly home: Home
  /** The folder with what was built with failpoints. */
  readonly programs: string
  /** For the runner. */
  readonly env?: NodeJS.ProcessEnv
  /** What lies about and belongs to nothing that is written down. */
  remains(): Promise<string[]>
}

/** Where a program writes down that it was struck. */
class Mark implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "wm-"))

  get isStruck(): boolean {
    return existsSync(join(this.folder, "fired"))
  }

  get passed(): string[] {
    const file = join(this.folder, "passed")
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : []
  }

  /** Struck a second time it must not be held back by the first. */
  clear(): void {
    rmSync(join(this.folder, "fired"), { force: true })
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/**
 * A chapter of the day, with a runner that is struck on the way, and another time while it recovers. What was acknowledged stays, the
 * day goes on to its end, and nothing is left that is not written down.
 */
export class Trial {
  readonly #place: Place
  readonly #story: Story
  readonly #wrong: string[] = []
  readonly #readyMs: number[] = []
  #struck = 0
  #cut: string | undefined

  constructor(place: Place, chapter: Chapter) {
    this.#place = place
    this.#story = new Story(chapter)
  }

  async run(strikes: readonly Strike[]): Promise<Told> {
    using mark = new Mark()
    for (let starts = 0; !this.#story.isOver && this.#wrong.length === 0; starts++) {
      if (starts > strikes.length + 1) throw new Error(`${this.#story.step}: it was started ${starts} times`)
      const strike = strikes[starts]
      await this.#life(mark, strike)
      if (mark.isStruck) this.#struck++
      mark.clear()
    }
    // What could not be taken back after a failure is found by the next runner.
    if (strikes.some(({ deed }) => deed === "error") && this.#wrong.length === 0) await this.#life(mark, undefined)
    return {
      ...{ struck: this.#struck, cut: this.#cut, readyMs: this.#readyMs },
      ...{ passed: mark.passed, wrong: this.#wrong },
    }
  }

  /** From a start to an end, whichever comes first: the chapter's or the process's. */
  async #life(mark: Mark, strike: Strike | undefined): Promise<void> {
    const runner = await startStruck(this.#place, mark, strike)
    if (!runner) return
    try {
      this.#readyMs.push(runner.readyMs)
      await this.#live(runner, mark, strike)
    } catch (failure) {
      // What works by itself may have been struck while everything was looked at.
      if (!mark.isStruck || !(await hasDied(runner))) throw failure
    } finally {
      await runner[Symbol.asyncDispose]()
    }
  }

  async #live(runner: Runner, mark: Mark, strike: Strike | undefined): Promise<void> {
    const hasFailed = strike?.deed === "error"
    const isOver = async (): Promise<boolean> => {
      const flaws = await this.#flaws(runner, hasFailed)
      // What works by itself may have been struck while everything was looked at: the next runner is looked at anew.
      if (flaws.length > 0 && !hasFailed && mark.isStruck && (await hasDied(runner))) return true
      this.#wrong.push(...flaws)
      return this.#wrong.length > 0
    }
    if (await isOver()) return
    for (let failures = 0; ; failures++) {
      const failure = await this.#story.live(runner.talk)
      if (failure) this.#cut ??= this.#story.step
      if (failure && !hasFailed && (await hasDied(runner))) return
      // One strike makes one thing fail.
      if (failure && (failures > 0 || !mark.isStruck))
        this.#wrong.push(`${this.#story.step}: ${failure.code} ${failure.message}`)
      if ((await isOver()) || !failure) return
    }
  }

  /** The first kind of thing that is not as it must be. */
  async #flaws(runner: Runner, mayLeave: boolean): Promise<string[]> {
    const unlike = await this.#story.settle(runner.talk)
    if (unlike.length > 0) return unlike
    const unknown = await strangers(runner.talk, this.#story.subjects)
    return unknown.length > 0 || mayLeave ? unknown : this.#place.remains()
  }
}

const patienceMs = 5_000

/** A call may fail a moment before the process is seen to be gone. */
async function hasDied(runner: Runner): Promise<boolean> {
  const late = new AbortController()
  const tooLate = pause(patienceMs, false, { signal: late.signal }).catch(() => false)
  const isDead = await Promise.race([runner.died().then(() => true), tooLate])
  late.abort()
  return isDead
}

/** Undefined when it died while it started, as it was told to. */
async function startStruck(place: Place, mark: Mark, strike: Strike | undefined): Promise<Runner | undefined> {
  const env = { ...pool, ...place.env, FAULT_FOLDER: mark.folder, ...(strike ? { FAULT: faultOf(strike) } : {}) }
  try {
    return await Runner.start(place.home, env, place.programs)
  } catch (failure) {
    if (mark.isStruck) return undefined
    throw failure
  }
}
