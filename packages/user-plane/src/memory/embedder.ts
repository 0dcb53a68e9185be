import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { backoffMs } from "@warren/base/retry.ts"
import { embed, type EmbeddingEndpoint } from "./embeddings.ts"
import type { Memories } from "./memories.ts"

const batchMax = 32
const backoff = { baseMs: 1_000, capMs: 60_000 }
const attemptMax = 10

/** Gives every memory its vector, one batch after the other; what is on disk says what is still to do. */
export class Embedder implements AsyncDisposable {
  readonly #memories: Memories
  readonly #endpoint: EmbeddingEndpoint
  readonly #clock: Clock
  readonly #log: Log
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #hasMore = false

  constructor(memories: Memories, endpoint: EmbeddingEndpoint, clock: Clock, log: Log) {
    this.#memories = memories
    this.#endpoint = endpoint
    this.#clock = clock
    this.#log = log
  }

  /** There may be something to do. */
  wake(): void {
    this.#hasMore = true
    if (this.#stop.signal.aborted) return
    this.#running ??= this.#run()
  }

  /** Resolves when there is nothing left to do. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the memory is closing"))
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    let failures = 0
    while (this.#hasMore && !signal.aborted) {
      // Taken back before the look: whoever adds one from here on says so again.
      this.#hasMore = false
      try {
        if (await this.#fillSome(signal)) this.#hasMore = true
        failures = 0
      } catch (thrown) {
        this.#hasMore = true
        failures = Math.min(failures + 1, attemptMax)
        if (!signal.aborted) await this.#wait(thrown, failures)
      }
    }
    // In the same turn as the last look at `hasMore`, so that nobody finds it running who will not be served.
    this.#running = undefined
  }

  async #wait(thrown: unknown, failures: number): Promise<void> {
    const { code, message } = Fault.from(thrown)
    this.#log("warn", "memory.embed", { ok: false, code, message })
    await this.#clock.sleep(backoffMs(failures, backoff), this.#stop.signal).catch(() => undefined)
  }

  /** Whether there may be more. */
  async #fillSome(signal: AbortSignal): Promise<boolean> {
    const model = modelOf(this.#endpoint)
    const waiting = this.#memories.withoutVector(model, batchMax)
    if (waiting.length === 0) return false
    this.#memories.setVectors(model, await this.#vectors(waiting, signal))
    this.#log("info", "memory.embed", { ok: true, memories: waiting.length })
    return true
  }

  /** One text that the endpoint does not take must not keep the others waiting. */
  async #vectors(
    waiting: readonly { readonly n: number; readonly text: string }[],
    signal: AbortSignal,
  ): Promise<{ n: number; vector: Buffer | undefined }[]> {
    try {
      const vectors = await embed(
        this.#endpoint,
        waiting.map(({ text }) => text),
        signal,
      )
      return waiting.map(({ n }, index) => ({ n, vector: vectors[index] }))
    } catch (thrown) {
      if (!(thrown instanceof Fault) || thrown.code !== "invalid") throw thrown
      const [only] = waiting
      if (waiting.length === 1 && only) {
        this.#log("warn", "memory.embed", { ok: false, memory: only.n, code: thrown.code, message: thrown.message })
        return [{ n: only.n, vector: undefined }]
      }
      const half = Math.ceil(waiting.length / 2)
      return [
        ...(await this.#vectors(waiting.slice(0, half), signal)),
        ...(await this.#vectors(waiting.slice(half), signal)),
      ]
    }
  }
}

/** Vectors of different models or lengths have nothing to do with each other. */
export function modelOf({ model, dimensions }: EmbeddingEndpoint): string {
  return `${model}/${dimensions}`
}
