import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import type { Talk } from "../runner/talk.ts"

/** Looks whether something is as it was said to be: undefined when it is, otherwise what is found instead. */
export type Fact<W = Talk> = (talk: W) => Promise<string | undefined>
/** By what they are about: `session:a`, `image:tiny`. */
export type Facts<W = Talk> = Readonly<Record<string, Fact<W>>>

export interface Step<W = Talk> {
  readonly name: string
  act(talk: W): Promise<unknown>
  /** What is so when it was acknowledged. */
  readonly after: Facts<W>
  /** How it may be found besides when it was cut off: neither as before nor as after. */
  readonly between?: Facts<W>
  /** Asked for again also when it has happened: asking twice must not make two. */
  readonly isRepeated?: boolean
}

export interface Chapter<W = Talk> {
  readonly name: string
  /** How everything it is about is in the beginning. */
  readonly first: Facts<W>
  readonly steps: readonly Step<W>[]
}

/** What came to a halt on its way is finished without anybody asking: that takes a moment. */
const triesMax = 200
const lookAgainMs = 50

/** Whether all are as said; what is not. */
async function unlike<W>(talk: W, facts: Iterable<readonly [string, Fact<W>]>): Promise<string[]> {
  const found: string[] = []
  for (const [about, fact] of facts) {
    const words = await fact(talk)
    if (words !== undefined) found.push(`${about}: ${words}`)
  }
  return found
}

/**
 * A chapter being lived: what was acknowledged is a fact from then on, and a step that was cut off has happened wholly or not at all.
 */
export class Story<W = Talk> {
  readonly #facts: Map<string, Fact<W>>
  readonly #steps: readonly Step<W>[]
  #at = 0
  #isCut = false

  constructor({ first, steps }: Chapter<W>) {
    this.#facts = new Map(Object.entries(first))
    this.#steps = steps
  }

  get isOver(): boolean {
    return this.#at >= this.#steps.length
  }

  /** The step that is next, or was cut off. */
  get step(): string {
    return this.#steps[this.#at]?.name ?? "the end"
  }

  /** Everything anybody knows of: whatever else is found was never asked for. */
  get subjects(): Iterable<string> {
    return this.#facts.keys()
  }

  /** Goes on until it is over or a step fails; what it failed with, when it failed. */
  async live(talk: W): Promise<Fault | undefined> {
    for (; !this.isOver; this.#at++) {
      const step = this.#steps[this.#at] as Step<W>
      try {
        await step.act(talk)
      } catch (failure) {
        this.#isCut = true
        if (failure instanceof Fault) return failure
        throw new Error(`${step.name}: ${String(failure)}`, { cause: failure })
      }
      this.#acknowledge(step)
    }
    return undefined
  }

  /** What does not fit what was acknowledged. Finds out of the step that was cut off whether it has happened. */
  async settle(talk: W): Promise<string[]> {
    const step = this.#isCut ? (this.#steps[this.#at] as Step<W>) : undefined
    const wrong = await unlike(
      talk,
      [...this.#facts].filter(([about]) => !(step && about in step.after)),
    )
    if (!step || wrong.length > 0) return wrong
    const isDone = await this.#hasHappened(talk, step)
    if (Array.isArray(isDone)) return isDone
    this.#isCut = false
    if (isDone && !step.isRepeated) {
      this.#acknowledge(step)
      this.#at++
    }
    return []
  }

  /** Or what is half of it, and stays so. */
  async #hasHappened(talk: W, step: Step<W>): Promise<boolean | string[]> {
    for (let tries = 0; ; tries++) {
      const found = await this.#foundOf(talk, step)
      if (!Array.isArray(found) || tries === triesMax) return found
      await pause(lookAgainMs)
    }
  }

  async #foundOf(talk: W, { name, after, between }: Step<W>): Promise<boolean | string[]> {
    const asAfter = await unlike(talk, Object.entries(after))
    if (asAfter.length === 0) return true
    const asBefore = await unlike(
      talk,
      [...this.#facts].filter(([about]) => about in after),
    )
    if (asBefore.length === 0) return false
    if (between && (await unlike(talk, Object.entries(between))).length === 0) return false
    return [`${name} has happened by half`, ...asBefore.map((one) => `not before: ${one}`), ...asAfter]
  }

  #acknowledge({ after }: Step<W>): void {
    for (const [about, fact] of Object.entries(after)) this.#facts.set(about, fact)
  }
}
