import { Fault } from "@warren/base/fault.ts"
import type { Numbered } from "../contract.ts"
import { rpcLimits } from "./wire.ts"

interface Kept extends Numbered<unknown> {
  readonly bytes: number
}

/** Feed items between the connection and one reader. What does not fit is not dropped silently: the feed ends with `resync`. */
export class FeedBuffer {
  #items: Kept[] = []
  #bytes = 0
  #end: { readonly thrown: unknown } | "done" | undefined
  #wake: (() => void) | undefined

  /** False when the reader is too far behind; the feed is then over for it. */
  add(seq: number, item: unknown, bytes: number): boolean {
    if (this.#end) return true
    if (this.#items.length >= rpcLimits.feedItemsMax || this.#bytes + bytes > rpcLimits.feedBytesMax) {
      const last = this.#items.at(-1)?.seq ?? seq - 1
      this.fail(new Fault("resync", "the reader fell behind", { hint: `read again after ${last}` }))
      return false
    }
    this.#items.push({ seq, item, bytes })
    this.#bytes += bytes
    this.#wake?.()
    return true
  }

  end(): void {
    this.#end ??= "done"
    this.#wake?.()
  }

  fail(thrown: unknown): void {
    this.#end ??= { thrown }
    this.#wake?.()
  }

  /** What was kept, then what comes; then the end or the failure. */
  async *read(): AsyncGenerator<Numbered<unknown>, void, void> {
    for (;;) {
      const batch = this.#items
      this.#items = []
      this.#bytes = 0
      yield* batch
      if (this.#items.length > 0) continue
      if (this.#end === "done") return
      if (this.#end) throw this.#end.thrown
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
    }
  }
}
