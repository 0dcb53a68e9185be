import { constants } from "node:os"
import { Fault } from "@warren/base/fault.ts"

const handled = ["SIGINT", "SIGTERM", "SIGHUP"] as const
export type Interrupt = (typeof handled)[number]

/**
 * What a person or the system interrupts this process with. The first one stops what is being done, which then cleans up
 * after itself; the second does not wait for that. A program that is being run takes them instead.
 */
export class Interrupts implements Disposable {
  readonly #stop = new AbortController()
  #taker: ((name: Interrupt) => void) | undefined
  #received: Interrupt | undefined
  readonly #listener = (name: NodeJS.Signals): void => this.#receive(name as Interrupt)

  constructor() {
    for (const name of handled) process.on(name, this.#listener)
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** The exit code shells expect of what a signal ended; undefined when none did. */
  get exitCode(): number | undefined {
    return this.#received && 128 + constants.signals[this.#received]
  }

  /** Stops everything for another reason. */
  abort(reason: Fault): void {
    this.#stop.abort(reason)
  }

  /** Until it is disposed, `taker` hears of interrupts and nothing stops by itself. */
  take(taker: (name: Interrupt) => void): Disposable {
    const before = this.#taker
    this.#taker = taker
    return { [Symbol.dispose]: () => void (this.#taker = before) }
  }

  [Symbol.dispose](): void {
    for (const name of handled) process.off(name, this.#listener)
  }

  #receive(name: Interrupt): void {
    if (this.#taker) return this.#taker(name)
    if (this.#received) process.exit(this.exitCode)
    this.#received = name
    this.#stop.abort(new Fault("cancelled", `stopped by ${name}`))
  }
}
