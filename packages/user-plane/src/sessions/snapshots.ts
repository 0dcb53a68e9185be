import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { canSnapshot, type Driver, type DriverName, type Snapshotting } from "@warren/drivers/driver.ts"
import type { SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import type { Snapshot } from "@warren/protocol/user-plane/session.ts"
import type { z } from "zod"
import type { ImageSource, Sandboxes } from "./sandboxes.ts"
import type { SessionRecord } from "./session-record.ts"
import type { SnapshotRecord, SnapshotStore } from "./snapshot-store.ts"

const snapshotsLookedAt = 1_000

/** Frozen files of sessions: written down before they are made, and before they are taken away. */
export class Snapshots {
  readonly #store: SnapshotStore
  readonly #sandboxes: Sandboxes
  readonly #images: ImageSource
  readonly #clock: Clock
  /** Gone, and still written down: the database was locked, or full. */
  readonly #owed = new Set<SnapshotId>()

  constructor(store: SnapshotStore, sandboxes: Sandboxes, images: ImageSource, clock: Clock) {
    this.#store = store
    this.#sandboxes = sandboxes
    this.#images = images
    this.#clock = clock
  }

  /** All there are, also those being made or taken away. */
  ids(): SnapshotId[] {
    return this.#store.ids()
  }

  /** Of a session whose turn it is. */
  async take(
    session: SessionRecord,
    how: { name?: string | undefined; isAutomatic?: boolean } = {},
  ): Promise<SnapshotRecord> {
    const record = await this.#freeze(session, how)
    try {
      this.#store.set(record.id, "ready")
    } catch (failure) {
      // Nobody is told of it: nothing of it stays.
      await this.#remove(record, this.#driver(record.plan.driver))
      throw failure
    }
    failpoint("snapshot/ready")
    return record
  }

  /** One that goes when it is disposed, or with the runner: as far as the table is concerned it is never made. */
  async passing(session: SessionRecord): Promise<SnapshotRecord & AsyncDisposable> {
    const record = await this.#freeze(session, {})
    return { ...record, [Symbol.asyncDispose]: () => this.#remove(record, this.#driver(record.plan.driver)) }
  }

  async #freeze(
    session: SessionRecord,
    how: { name?: string | undefined; isAutomatic?: boolean },
  ): Promise<SnapshotRecord> {
    if (session.sandbox === undefined) throw new Fault("conflict", "the session has no files any more")
    const { from: _, ...plan } = session.plan
    const record: SnapshotRecord = {
      id: newId("snp"),
      session: session.id,
      name: how.name,
      plan,
      image: session.image,
      createdAt: this.#clock.now(),
      isAutomatic: how.isAutomatic ?? false,
      parent: session.base,
    }
    const driver = this.#driver(plan.driver)
    this.#store.add(record)
    try {
      failpoint("snapshot/noted")
      // What it was written on stays as long as it does.
      await this.#images.use(plan.image, record.id)
      await driver.snapshot(session.sandbox, record.id)
      failpoint("snapshot/frozen")
      return record
    } catch (failure) {
      await this.#remove(record, driver)
      throw failure
    }
  }

  get(id: string): SnapshotRecord {
    const record = this.#store.find(id)
    if (!record) throw new Fault("not_found", "there is no such snapshot", { subject: `snapshot:${id}` })
    return record
  }

  /** The first that was made of a session in a stretch of time, the end of which is open. */
  between(session: string, begin: number, end: number): SnapshotRecord | undefined {
    const all = this.#store.list({ session, limit: snapshotsLookedAt }).map(({ record }) => record)
    return all.findLast(({ createdAt }) => createdAt >= begin && createdAt < end)
  }

  list(options: { session?: string | undefined; cursor?: string | undefined; limit: number }) {
    const before = options.cursor === undefined ? undefined : Number(options.cursor)
    const rows = this.#store.list({ session: options.session, before, limit: options.limit + 1 })
    const items = rows.slice(0, options.limit)
    const last = items.at(-1)
    return {
      items: items.map(({ record }) => shownSnapshot(record)),
      ...(rows.length > options.limit && last ? { nextCursor: String(last.number) } : {}),
    }
  }

  /** Sessions that began with it have their own copy: it can always go. */
  async delete(id: string): Promise<void> {
    const record = this.get(id)
    this.#store.set(record.id, "removing")
    failpoint("snapshot/removing")
    await this.#remove(record, this.#driver(record.plan.driver))
  }

  /** Keeps the newest automatic ones of a session. */
  async thin(session: string, keep: number): Promise<void> {
    const automatic = this.#store.list({ session, limit: 1_000 }).filter(({ record }) => record.isAutomatic)
    for (const { record } of automatic.slice(keep)) await this.delete(record.id)
  }

  /** After a crash: what was half made goes, and so does what nobody wrote down. */
  async sweep(drivers: Iterable<Driver>): Promise<void> {
    for (const record of this.#store.unfinished()) await this.#remove(record, this.#driver(record.plan.driver))
    for (const driver of drivers) {
      if (!canSnapshot(driver)) continue
      for (const id of await driver.listSnapshots()) if (!this.#store.has(id)) await driver.removeSnapshot(id)
    }
  }

  /** Writes down what is owed. */
  flush(): void {
    for (const id of this.#owed) {
      this.#store.delete(id)
      this.#owed.delete(id)
    }
  }

  async #remove({ id }: { readonly id: SnapshotId }, driver: Snapshotting): Promise<void> {
    await driver.removeSnapshot(id)
    this.#images.release(id)
    failpoint("snapshot/removed")
    this.#owed.add(id)
    try {
      this.flush()
    } catch {
      // It has happened. The next flush writes it down, or the next runner finds that it was on its way out.
    }
  }

  #driver(name: DriverName): Driver & Snapshotting {
    const driver = this.#sandboxes.driver(name)
    if (canSnapshot(driver)) return driver
    throw new Fault("unsupported", `the driver ${name} cannot make snapshots: ${driver.abilities.reasons["snapshot"]}`)
  }
}

export function shownSnapshot({ plan: _, createdAt, ...record }: SnapshotRecord): z.output<typeof Snapshot> {
  return { ...record, createdAt: new Date(createdAt).toISOString() }
}
