import { messageOf, type Fault } from "@warren/base/fault.ts"
import { setTimeout as pause } from "node:timers/promises"
import type { Home } from "../runner/home.ts"
import { Runner } from "../runner/runner.ts"
import { strangers } from "./facts.ts"
import type { Failing, Mishap } from "./mishap.ts"
import { remains } from "./remains.ts"
import { Story, type Chapter } from "./story.ts"

/** What somebody is told whose request found no room. */
const told = new Set(["limit", "unavailable"])
const settleTries = 40
const lookAgainMs = 50

export interface DiskTold {
  readonly isHit: boolean
  /** What failed. */
  readonly hit: string
  /** The step in which somebody was told, and what. */
  readonly cut: string | undefined
  /** What only the next runner brought into order. */
  readonly restarted: string | undefined
  readonly wrong: readonly string[]
  /** It cannot go on from here. */
  readonly isBroken: boolean
}

/** A runner that lives through one day after the other, in each of which a write fails. */
export class DiskTrial implements AsyncDisposable {
  readonly #home: Home
  readonly #mishap: Mishap
  #runner: Runner | undefined

  constructor(home: Home, mishap: Mishap) {
    this.#home = home
    this.#mishap = mishap
  }

  async start(): Promise<Runner> {
    const env = this.#mishap.env(this.#home.path)
    return (this.#runner ??= await Runner.start(this.#home, env))
  }

  /** Ended as it is told to, while everything can be written again. */
  async stop(): Promise<void> {
    await this.#runner?.[Symbol.asyncDispose]()
    this.#runner = undefined
  }

  /** `n` 0: nothing fails. */
  async day(chapter: Chapter, n: number, how: Failing): Promise<DiskTold> {
    const story = new Story(chapter)
    await this.start()
    let cut: string | undefined
    let restarted: string | undefined
    const [wrong, broken]: [string[], string[]] = [[], []]
    if (n > 0) this.#mishap.failAt(n, how)
    while (!story.isOver && broken.length === 0) {
      const { talk } = await this.start()
      const failure = await story.live(talk)
      this.#mishap.heal()
      if (failure) cut ??= `${story.step}: ${failure.code} ${failure.message} (${failure.hint ?? "no hint"})`
      if (failure) wrong.push(...this.#unfit(story.step, failure))
      // While nothing can be written nothing can be taken back either: that is the next runner's.
      const left = await this.#settled(story, how === "on")
      if (left.length > 0) {
        restarted = left.join("; ")
        await this.stop()
        await this.start()
        broken.push(...(await this.#settled(story, false)))
      }
    }
    const hit = { isHit: this.#mishap.hits > 0, hit: this.#mishap.hit }
    return { ...hit, cut, restarted, wrong: [...wrong, ...broken], isBroken: broken.length > 0 }
  }

  /** Starts anew while a write fails: what it said when it did not start. */
  async startStruck(n: number, how: Failing): Promise<string | undefined> {
    await this.stop()
    this.#mishap.failAt(n, how)
    try {
      await this.start()
      return undefined
    } catch (failure) {
      return messageOf(failure)
    } finally {
      this.#mishap.heal()
    }
  }

  /** What the next runner finds that belongs to nothing. */
  async leftovers(): Promise<string[]> {
    await this.stop()
    await this.start()
    return remains(this.#home)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #unfit(step: string, { code, message }: Fault): string[] {
    if (!this.#runner?.isRunning) return [`${step}: the runner ended`]
    if (this.#mishap.hits === 0) return [`${step}: ${code} ${message}, and nothing was hit`]
    return told.has(code) ? [] : [`${step}: told ${code} ${message}`]
  }

  /** What is not in order, also after a while: the runner tries again by itself. */
  async #settled(story: Story, mayLeave: boolean): Promise<string[]> {
    for (let tries = 1; ; tries++) {
      const { talk } = await this.start()
      const found = await story.settle(talk)
      if (found.length === 0) found.push(...(await strangers(talk, story.subjects)))
      // It looks again by itself for as long as anything goes on.
      if (found.length === 0) return mayLeave ? [] : await remains(this.#home)
      if (tries === settleTries) return found
      await pause(lookAgainMs)
    }
  }
}
