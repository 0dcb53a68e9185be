import type { Live } from "./sandboxes.ts"
import type { SessionRecord } from "./session-record.ts"

/** A session being used: its sandbox, and what its programs are given. */
export class Use implements Disposable {
  readonly live: Live
  readonly record: SessionRecord
  readonly #use: Disposable

  constructor(live: Live, record: SessionRecord, use: Disposable) {
    this.live = live
    this.record = record
    this.#use = use
  }

  [Symbol.dispose](): void {
    this.#use[Symbol.dispose]()
  }
}

/** What is this session's alone is given to its sandbox before anybody is told that it is there. */
export async function equip({ wayOut }: Live, { reach, keys }: SessionRecord): Promise<void> {
  if (!wayOut) return
  await wayOut.allow(reach)
  wayOut.lend(keys)
}
