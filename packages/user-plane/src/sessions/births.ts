import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { newId } from "@warren/base/id.ts"
import type { SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import type { Pool } from "../pool/pool.ts"
import { Entry } from "./entry.ts"
import { madeUpName } from "./names.ts"
import type { Plan } from "./plan.ts"
import type { Live, Sandboxes } from "./sandboxes.ts"
import type { SessionBook } from "./session-book.ts"
import type { SessionRecord } from "./session-record.ts"
import { equip } from "./use.ts"
import type { Wishes } from "./wishes.ts"

export interface BirthParts {
  readonly book: SessionBook
  readonly sandboxes: Sandboxes
  readonly pool: Pool
  readonly clock: Clock
}

/** How a session comes to be: from the pool, or with a sandbox of its own. What nobody was told of leaves nothing. */
export class Births {
  readonly #parts: BirthParts

  constructor(parts: BirthParts) {
    this.#parts = parts
  }

  /** `from`: the snapshot its files are taken from. */
  async make(record: SessionRecord, from: SnapshotId | undefined, signal: AbortSignal): Promise<Entry> {
    const { book, pool, clock } = this.#parts
    book.checkFree(record)
    const begun = clock.monotonic()
    const waiting = from === undefined ? pool.take(record.plan, signal) : undefined
    failpoint("session/taken")
    return waiting ? this.#admit(record, waiting, begun) : this.#start(record, from, begun, signal)
  }

  async #admit(record: SessionRecord, waiting: Live, begun: number): Promise<Entry> {
    const { book, pool, clock } = this.#parts
    try {
      await equip(waiting, record)
      failpoint("session/claiming")
      const acquired = { acquireSource: "pool", acquireMs: clock.monotonic() - begun } as const
      const entry = new Entry({ ...record, sandbox: waiting.id, state: "running", ...acquired }, clock)
      book.add(entry, waiting)
      failpoint("session/admitted")
      book.attach(entry, waiting)
      return entry
    } catch (failure) {
      pool.giveBack(waiting)
      throw failure
    }
  }

  async #start(
    record: SessionRecord,
    from: SnapshotId | undefined,
    begun: number,
    signal: AbortSignal,
  ): Promise<Entry> {
    const { book, sandboxes, clock } = this.#parts
    const entry = new Entry(record, clock)
    book.add(entry)
    let live: Live | undefined
    try {
      failpoint("session/noted")
      live = await sandboxes.make({ ...record.plan, from }, record.id, signal)
      await equip(live, record)
      failpoint("session/equipped")
      book.move(entry, "ready", { sandbox: live.id, acquireMs: clock.monotonic() - begun })
      failpoint("session/made")
      book.attach(entry, live)
      return entry
    } catch (failure) {
      const made = live
      await book.forget(entry, async () => {
        if (made) await sandboxes.destroy(made.id, made.plan, made.wayOut)
      })
      throw failure
    }
  }
}

/** The first record of a session that is wished for. */
export function wished(
  wishes: Wishes,
  plan: Plan,
  image: string,
  base: SnapshotId | undefined,
  now: number,
): SessionRecord {
  const { access, allow } = wishes.network?.mode === "proxy" ? wishes.network : { access: "list" as const, allow: [] }
  const { key, labels, env, secrets, keys, ttlMs, lifeMs, lifeAction, idle, snapshots } = wishes
  return {
    ...{ id: newId("ses"), name: wishes.name ?? madeUpName(), key, labels, state: "starting", plan, image, base },
    ...{ reach: { access, allow }, env, secrets, keys, ttlMs, lifeMs, lifeAction, idle, snapshots },
    ...{ createdAt: now, usedAt: now, acquireSource: "cold", acquireMs: 0 },
  }
}

/** The first record of a fork. */
export function forked(parent: SessionRecord, name: string | undefined, now: number): SessionRecord {
  return {
    ...parent,
    ...{ id: newId("ses"), name: name ?? madeUpName(), key: undefined, state: "starting", parent: parent.id },
    ...{ createdAt: now, usedAt: now, sandbox: undefined, reason: undefined, detail: undefined, acquireSource: "cold" },
  }
}
