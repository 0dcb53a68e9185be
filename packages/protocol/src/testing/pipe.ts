import { streamTags } from "@warren/base/frame.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Context } from "../contract.ts"
import { Chunk, type Conversation } from "../conversation.ts"

export const pipeModes = [
  "echo",
  "flood",
  "rush",
  "deaf",
  "stubborn",
  "slow",
  "missing",
  "fails",
  "lies",
  "ends",
] as const

interface PipeInput {
  readonly mode: (typeof pipeModes)[number]
  readonly bytes: number
}

/** What happened inside, for a test to look at. */
export interface PipeRecord {
  readonly events: string[]
  produced: number
}

type Up = { op: string }
type Down = { ev: string }

/** Opens a conversation that behaves as asked. */
export async function openPipe(record: PipeRecord, input: PipeInput, { signal }: Context): Promise<Pipe> {
  signal.addEventListener("abort", () => record.events.push("aborted"), { once: true })
  if (input.mode === "missing") throw new Fault("not_found", "there is no such pipe", { subject: "pipe:1" })
  if (input.mode === "slow") {
    record.events.push("opening")
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
    throw signal.reason
  }
  record.events.push("opened")
  return new Pipe(record, input, signal)
}

/** Says back what it hears, one by one: `write` waits until the piece was asked for, so nothing piles up here. */
class Pipe implements Conversation<Up, Down> {
  readonly #record: PipeRecord
  readonly #input: PipeInput
  readonly #signal: AbortSignal
  #items: { item: Down | Uint8Array; done: () => void }[] = []
  #wake: (() => void) | undefined
  #lent: Buffer | undefined

  constructor(record: PipeRecord, input: PipeInput, signal: AbortSignal) {
    this.#record = record
    this.#input = input
    this.#signal = signal
    signal.addEventListener("abort", () => this.#wake?.(), { once: true })
  }

  async next(): Promise<Down | Chunk | undefined> {
    // What was lent is taken back as soon as more is asked for: whoever did not copy it sees nonsense.
    this.#lent?.fill(0xee)
    if (this.#input.mode === "ends") return undefined
    if (this.#input.mode === "fails") throw new Fault("conflict", "it broke in the middle")
    if (this.#input.mode === "lies") return { ev: 5 } as unknown as Down
    if (this.#input.mode === "stubborn") return new Promise<never>(() => undefined)
    if (this.#input.mode === "flood") return this.#flood()
    if (this.#input.mode === "rush") return this.#lend(Buffer.alloc(100))
    return this.#echo()
  }

  send({ op }: Up): void {
    this.#record.events.push(`said ${op.slice(0, 8)}`)
    this.#items.push({ item: { ev: op }, done: () => undefined })
    this.#wake?.()
  }

  write(bytes: Uint8Array): Promise<void> {
    this.#record.produced += bytes.length
    if (this.#input.mode === "deaf" || this.#input.mode === "stubborn") return new Promise<never>(() => undefined)
    return new Promise((done) => {
      this.#items.push({ item: bytes, done })
      this.#wake?.()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#record.events.push("disposed")
    return Promise.resolve()
  }

  async #echo(): Promise<Down | Chunk | undefined> {
    for (;;) {
      this.#signal.throwIfAborted()
      const { item, done } = this.#items.shift() ?? {}
      done?.()
      if (item instanceof Uint8Array) return this.#lend(item)
      if (item?.ev === "eof") return undefined
      if (item) return item
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async #flood(): Promise<Chunk> {
    this.#signal.throwIfAborted()
    // As a real source does, it takes turns with everybody else.
    await new Promise(setImmediate)
    this.#record.produced += this.#input.bytes
    return this.#lend(Buffer.alloc(this.#input.bytes, 7))
  }

  #lend(bytes: Uint8Array): Chunk {
    this.#lent = Buffer.from(bytes)
    return new Chunk(streamTags.stdout, this.#lent)
  }
}
