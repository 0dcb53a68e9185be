import { availableParallelism } from "node:os"
import { expect, test } from "vitest"
import type { Cgroup } from "./cgroup.ts"
import { Courtesy } from "./courtesy.ts"

/** Of the kernel's only what is looked at. */
class Group {
  readonly priority = { isLow: false }
  us = 0
  cpuUs(): number {
    return this.us
  }
}

/** Time that passes when it is told to, with somebody who waits for a processor all the while, or not. */
class Machine implements Disposable {
  readonly groups: Group[]
  readonly #courtesy: Courtesy
  #nowMs = performance.now()
  #waitedUs = 0

  constructor(count: number) {
    this.groups = Array.from({ length: count }, () => new Group())
    this.#courtesy = new Courtesy(
      () => this.groups as unknown as Cgroup[],
      () => this.#waitedUs,
    )
  }

  /** `shares`: of a processor, each. Who is low afterwards. */
  pass(shares: readonly number[], waits = 1): readonly boolean[] {
    const ms = 1_000
    this.#nowMs += ms
    this.#waitedUs += waits * ms * 1_000
    for (const [n, share] of shares.entries()) (this.groups[n] as Group).us += share * ms * 1_000
    this.#courtesy.look(this.#nowMs)
    return this.groups.map(({ priority }) => priority.isLow)
  }

  [Symbol.dispose](): void {
    this.#courtesy[Symbol.dispose]()
  }
}

test("who takes a processor for itself lets the others pass, until it takes little", () => {
  using machine = new Machine(2)
  machine.pass([1, 0.1])
  expect(machine.pass([1, 0.1])).toEqual([true, false])
  expect(machine.pass([0.5, 0.1])).toEqual([true, false])
  expect(machine.pass([0.01, 0.1])).toEqual([false, false])
})

test("where nobody waits nobody is looked at", () => {
  using machine = new Machine(1)
  for (let n = 0; n < 3; n++) expect(machine.pass([1], 0)).toEqual([false])
})

test("one that was starved has its turn", () => {
  using machine = new Machine(1)
  machine.pass([1])
  expect(machine.pass([1])).toEqual([true])
  expect(machine.pass([0])).toEqual([false])
})

test("of many that are busy those who have their share of the processors, or more, are greedy", () => {
  const many = availableParallelism() * 4
  using machine = new Machine(many + 1)
  const shares = [...Array.from({ length: many }, () => 0.24), 0.06]
  machine.pass(shares)
  expect(machine.pass(shares)).toEqual([...Array.from({ length: many }, () => true), false])
})
