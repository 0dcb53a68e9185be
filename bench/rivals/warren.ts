import type { Sandbox } from "@warren/drivers/driver.ts"
import { elapsedMs } from "../metric.ts"
import type { Runner } from "../runner.ts"
import { memoryOf, sumOf } from "../sandbox-memory.ts"
import { execTrue, type Sandboxes } from "../sandboxes.ts"
import type { Rival } from "./rival.ts"

/** The driver in this process: create, start, first `true`, destroy. */
export class WarrenCold implements Rival {
  readonly name = "warren, cold"
  readonly how = "the oci driver: create, start, first `true` over init's socket, destroy"
  readonly #sandboxes: Sandboxes
  readonly #asleep: Sandbox[] = []

  constructor(sandboxes: Sandboxes) {
    this.#sandboxes = sandboxes
  }

  cycle(): Promise<number> {
    return elapsedMs(async () => {
      const sandbox = await this.#sandboxes.create()
      await execTrue(sandbox)
      await this.#sandboxes.destroy(sandbox)
    })
  }

  async start(): Promise<void> {
    this.#asleep.push(await this.#sandboxes.create())
  }

  exec(): Promise<number> {
    const last = this.#asleep.at(-1)
    if (!last) throw new Error("none runs")
    return elapsedMs(() => execTrue(last))
  }

  async memory(): Promise<number> {
    const { own, kernel } = sumOf(await Promise.all(this.#asleep.map(memoryOf)))
    return own + kernel
  }

  async stop(): Promise<void> {
    for (const sandbox of this.#asleep.splice(0)) await this.#sandboxes.destroy(sandbox)
  }
}

/** A runner with sandboxes that wait ready, asked over its socket: what a person who asks for a session gets. */
export class WarrenWarm implements Rival {
  readonly name = "warren, from the pool"
  readonly how =
    "over the runner's socket: session.create from the pool, first `true`, session.delete. The only one with a way out: an egress proxy"
  readonly #runner: Runner
  readonly #asleep: string[] = []

  constructor(runner: Runner) {
    this.#runner = runner
  }

  async cycle(): Promise<number> {
    await this.#runner.poolFull()
    let source: string | undefined
    const ms = await elapsedMs(async () => {
      const { id, acquireSource } = await this.#runner.create()
      source = acquireSource
      await this.#runner.execTrue(id)
      await this.#runner.delete(id)
    })
    if (source !== "pool") throw new Error("the pool was empty")
    // Filling it again is nobody else's burden.
    await this.#runner.poolFull()
    return ms
  }

  async start(): Promise<void> {
    this.#asleep.push((await this.#runner.create()).id)
  }

  exec(): Promise<number> {
    const last = this.#asleep.at(-1)
    if (last === undefined) throw new Error("none runs")
    return elapsedMs(() => this.#runner.execTrue(last))
  }

  async memory(): Promise<number> {
    const { own, kernel } = sumOf(await Promise.all(this.#asleep.map((id) => this.#runner.memoryOf(id))))
    return own + kernel
  }

  async stop(): Promise<void> {
    for (const id of this.#asleep.splice(0)) await this.#runner.delete(id)
    await this.#runner.poolFull()
  }
}
