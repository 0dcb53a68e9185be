import type { Socket } from "node:net"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { JoinedSignal } from "@warren/base/joined-signal.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { rpcVersion } from "@warren/protocol/rpc/wire.ts"

export const heartbeatLimits = {
  /** A request that takes longer makes us ask whether the runner is there at all. */
  quietMs: 3_000,
  /** How long a runner that is there may take to greet. */
  greetMs: 3_000,
  /** So often it is looked for the greeting meanwhile: who asks may be busy, too, and see late what came in time. */
  looks: 20,
  /** While somebody follows a feed, which may be quiet for good reasons, it is asked this often. */
  feedMs: 6_000,
} as const

interface Waiting {
  readonly since: number
  fail(fault: Fault): void
}

/**
 * Tells a runner that hangs from one that has much to do: while requests take long, somebody new says hello to it. Greeting
 * costs it nothing, so one that does not greet answers nothing, and whoever waits for it is told so instead of waiting on.
 */
export class Heartbeat implements Disposable {
  readonly #connect: () => Promise<Socket>
  readonly #onDead: () => void
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  readonly #feeds = new Set<AbortController>()
  readonly #over = new AbortController()
  #isWatching = false
  #greetedAt: number

  constructor(connect: () => Promise<Socket>, onDead: () => void, clock: Clock) {
    this.#connect = connect
    this.#onDead = onDead
    this.#clock = clock
    this.#greetedAt = clock.monotonic()
  }

  /** The answer, or `unavailable` if the runner has stopped to be there. */
  watch<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { since: this.#clock.monotonic(), fail: reject }
      this.#waiting.add(waiting)
      const settled = (): boolean => this.#waiting.delete(waiting)
      answer.then(
        (value) => {
          settled()
          resolve(value)
        },
        (failure: unknown) => {
          settled()
          void this.#judged(failure).then(reject)
        },
      )
      if (!this.#isWatching) void this.#look()
    })
  }

  /** Aborts with `unavailable` when the runner has stopped to be there; whoever follows says when it is over. */
  follow(): { readonly signal: AbortSignal; close(): void } {
    const feed = new AbortController()
    this.#feeds.add(feed)
    if (!this.#isWatching) void this.#look()
    return { signal: feed.signal, close: () => this.#feeds.delete(feed) }
  }

  [Symbol.dispose](): void {
    this.#over.abort()
  }

  /** Once for all that wait, and only while somebody does. */
  async #look(): Promise<void> {
    this.#isWatching = true
    try {
      while (this.#waiting.size > 0 || this.#feeds.size > 0) {
        await this.#clock.sleep(heartbeatLimits.quietMs, this.#over.signal)
        if ((this.#isLate() || this.#isDue()) && !(await this.#greets())) this.#giveUp()
      }
    } catch {
      // Closed: whoever waits is told by the link.
    } finally {
      this.#isWatching = false
    }
  }

  #isDue(): boolean {
    return this.#feeds.size > 0 && this.#clock.monotonic() - this.#greetedAt >= heartbeatLimits.feedMs
  }

  /** A call may be out of time because it took long, or because there is nobody who could answer it. */
  async #judged(failure: unknown): Promise<unknown> {
    const isLate = failure instanceof Fault && failure.code === "timeout"
    return isLate && !(await this.#greets()) ? hung() : failure
  }

  #isLate(): boolean {
    const latest = this.#clock.monotonic() - heartbeatLimits.quietMs / 2
    return [...this.#waiting].some(({ since }) => since <= latest)
  }

  /** Also to those who have only just asked: what they asked over is hung up, and they have cancelled nothing. */
  #giveUp(): void {
    for (const waiting of this.#waiting) waiting.fail(hung())
    for (const feed of this.#feeds) feed.abort(hung())
    this.#feeds.clear()
    this.#onDead()
  }

  async #greets(): Promise<boolean> {
    const quiet = new AbortController()
    using either = new JoinedSignal(this.#over.signal, quiet.signal)
    const late = this.#tooLong(either.signal).catch(() => false)
    try {
      const isThere = await Promise.race([this.#greeting(quiet.signal), late])
      if (isThere) this.#greetedAt = this.#clock.monotonic()
      return isThere
    } finally {
      quiet.abort()
    }
  }

  /** Many short waits: between each and the next everything that has come is read, however long the wait then was. */
  async #tooLong(signal: AbortSignal): Promise<false> {
    const { greetMs, looks } = heartbeatLimits
    for (let look = 0; look < looks; look++) await this.#clock.sleep(greetMs / looks, signal)
    return false
  }

  async #greeting(over: AbortSignal): Promise<boolean> {
    const socket = await this.#connect().catch(() => undefined)
    if (!socket) return false
    over.addEventListener("abort", () => socket.destroy(), { once: true })
    if (over.aborted) socket.destroy()
    return new Promise((resolve) => {
      const channel = new FrameChannel(socket, { body: () => resolve(true), end: () => resolve(false) })
      channel.send({ hello: { version: rpcVersion, name: "control heartbeat" } })
    })
  }
}

function hung(): Fault {
  return new Fault("unavailable", "your runner does not answer", {
    hint: "it is busy or hangs: try again in a moment; if it stays so, tell an administrator",
  })
}
