import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { lackOf, type DriverName, type Usual } from "@warren/drivers/driver.ts"
import type { Received } from "@warren/protocol/contract.ts"
import type { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import type { Pool } from "../pool/pool.ts"
import { Births, forked, wished } from "./births.ts"
import { Entry } from "./entry.ts"
import { Lives, type Stopping } from "./lives.ts"
import { unfit } from "./moves.ts"
import type { ImageSource, Live, Sandboxes } from "./sandboxes.ts"
import { SessionBook } from "./session-book.ts"
import { shown, type Reason, type SessionData, type SessionRecord } from "./session-record.ts"
import type { SessionStore } from "./session-store.ts"
import type { SnapshotRecord } from "./snapshot-store.ts"
import { shownSnapshot, type Snapshots } from "./snapshots.ts"
import { equip, Use } from "./use.ts"
import { planOf, type Wishes } from "./wishes.ts"

type Input<K extends keyof typeof sessionCalls> = Received<typeof sessionCalls, K>

export interface SessionsParts {
  readonly store: SessionStore
  readonly sandboxes: Sandboxes
  readonly snapshots: Snapshots
  readonly pool: Pool
  readonly clock: Clock
  readonly log: Log
  /** What sessions get unless they wish otherwise. */
  readonly usual: { readonly driver: DriverName; readonly image: string }
  readonly images: ImageSource
  /** Sessions that are not over; one more is refused. */
  readonly sessionsMax: number
  /** Something has changed that may be due at another time. */
  wake(): void
}

interface Page {
  readonly items: SessionData[]
  readonly nextCursor?: string
  readonly eventSeq: number
}

const forksAtOnce = 4

/** The sessions of one user: made, used, put to sleep, woken, forked and ended, one thing at a time for each. */
export class Sessions {
  readonly #parts: SessionsParts
  readonly #book: SessionBook
  readonly #births: Births
  readonly #lives: Lives

  constructor(parts: SessionsParts) {
    this.#parts = parts
    this.#book = new SessionBook(parts)
    this.#births = new Births({ ...parts, book: this.#book })
    this.#lives = new Lives(this.#book, parts.sandboxes)
  }

  get entries(): Iterable<Entry> {
    return this.#book.entries
  }

  get events(): SessionBook["events"] {
    return this.#book.events
  }

  /** A session found on disk, as it is now. */
  async restoreEntry(record: SessionRecord, live: Live | undefined): Promise<void> {
    if (live) await equip(live, record)
    const entry = new Entry(record, this.#parts.clock)
    this.#book.keep(entry)
    if (live) this.#book.attach(entry, live)
  }

  async create(wishes: Wishes, signal: AbortSignal): Promise<SessionData> {
    const { images, sandboxes, snapshots, usual, clock } = this.#parts
    const base = wishes.from === undefined ? undefined : snapshots.get(wishes.from)
    const image = base?.image ?? wishes.image ?? usual.image
    const driver = sandboxes.driver(wishes.driver ?? base?.plan.driver ?? usual.driver)
    const plan = planOf(wishes, driver, base?.plan.image ?? images.resolve(image), base?.plan)
    const made = await this.#births.make(wished(wishes, plan, image, base?.id, clock.now()), base?.id, signal)
    return shown(made.record)
  }

  getOrCreate(
    wishes: Wishes & { key: string },
    signal: AbortSignal,
  ): Promise<{ session: SessionData; isNew: boolean }> {
    return this.#book.turnOfKey(wishes.key, async () => {
      const known = this.#parts.store.byKey(wishes.key)
      if (known) return { session: this.get(known.id), isNew: false }
      return { session: await this.create(wishes, signal), isNew: true }
    })
  }

  get(which: string): SessionData {
    return shown(this.record(which))
  }

  /** As it is written down; by id or name. */
  record(which: string): SessionRecord {
    return this.#book.record(which)
  }

  list({ cursor, limit, state, label }: Input<"session.list">): Page {
    const [name = "", ...value] = (label ?? "").split("=")
    const rows = this.#parts.store.list({
      ...(state === undefined ? {} : { states: Array.isArray(state) ? state : [state] }),
      ...(label === undefined ? {} : { label: { name, value: value.join("=") } }),
      ...(cursor === undefined ? {} : { before: numberOf(cursor) }),
      limit: limit + 1,
    })
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    return {
      items: items.map(({ record }) => shown(this.#book.current(record))),
      ...(rows.length > limit && last ? { nextCursor: String(last.number) } : {}),
      eventSeq: this.events.last,
    }
  }

  /** Tells whoever follows sessions how this one is now, although nothing of it was written down anew. */
  announce(which: string): void {
    this.#book.announce(which)
  }

  counts(): { running: number; all: number } {
    const running = [...this.entries].filter(({ live }) => live).length
    return { running, all: this.#parts.store.count() }
  }

  update({ id: which, network, ...asked }: Input<"session.update">): Promise<SessionData> {
    return this.#turn(which, async (entry) => {
      const { record } = entry
      if (network && network.mode !== record.plan.network)
        throw new Fault("unsupported", `a session with the network ${record.plan.network} cannot have another`)
      const reach = network?.mode === "proxy" ? { access: network.access, allow: network.allow } : record.reach
      const { name = record.name, labels = record.labels, env = record.env, keys = record.keys } = asked
      const ttlMs = asked.ttlMs === undefined ? record.ttlMs : (asked.ttlMs ?? undefined)
      const lifeMs = asked.lifeMs === undefined ? record.lifeMs : (asked.lifeMs ?? undefined)
      const lifeAction = asked.lifeAction ?? record.lifeAction
      const idle = asked.idle === undefined ? record.idle : (asked.idle ?? undefined)
      if (name !== record.name) this.#book.checkName(name)
      // Checked by the proxy first: rules that mean nothing are not written down.
      await entry.live?.wayOut?.allow(reach)
      if (asked.keys) entry.live?.wayOut?.lend(asked.keys)
      failpoint("session/changing")
      return this.#book.change(entry, { name, labels, env, keys, ttlMs, lifeMs, lifeAction, idle, reach })
    })
  }

  /** Its sandbox, awake. Until the result is disposed, it counts as used. */
  async use(which: string, signal: AbortSignal): Promise<Use> {
    for (;;) {
      const entry = this.#book.entry(which)
      if (entry.live && entry.record.state === "running") {
        const use = entry.begin()
        this.#book.touch(entry)
        // Nobody is woken: a use makes everything due later, never sooner.
        return new Use(entry.live, entry.record, use)
      }
      await this.#turn(entry.id, (found) => this.#lives.awaken(found, signal))
    }
  }

  /** Says no where its driver's wall is too weak for something. */
  requireUsual({ live }: Use, usual: Usual): void {
    const lack = lackOf(this.#parts.sandboxes.driver(live.plan.driver), usual)
    if (lack !== undefined)
      throw new Fault("unsupported", `this session has no ${usual}: ${lack}`, { hint: "use the driver oci" })
  }

  /** Whether it runs, without waking it. */
  live(which: string): Live {
    const { live, record } = this.#book.entry(which)
    if (live) return live
    throw unfit(record)
  }

  /** Tells whether what it runs in was ended after this. */
  watch(which: string): () => boolean {
    const entry = this.#book.known(which)
    const before = entry?.endings
    return () => entry?.endings !== before
  }

  pause(which: string): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#lives.pause(entry))
  }

  resume(which: string): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#lives.resume(entry))
  }

  hibernate(which: string, reason: Reason = "requested"): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#lives.hibernate(entry, reason))
  }

  restore(which: string, signal: AbortSignal): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#lives.restore(entry, signal))
  }

  stop(which: string, how: Stopping = {}): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#lives.stop(entry, how))
  }

  /** Everything of it goes; its snapshots and its workspace stay. */
  delete(which: string): Promise<void> {
    return this.#book.turn(which, (entry) => this.#lives.delete(entry))
  }

  /** Whatever failed on its way is done now. */
  finish(which: string): Promise<void> {
    return this.#turn(which, async () => undefined)
  }

  fail(entry: Entry, reason: Reason, detail: string): Promise<void> {
    return this.#book.turn(entry.id, () => this.#lives.fail(entry, reason, detail))
  }

  /** New sessions that begin with the files this one has at this moment. */
  /** `from`: a snapshot of its own that they have the files of; without it, as they are now. */
  async fork(
    { id: which, count, name }: Pick<Input<"session.fork">, "id" | "count" | "name">,
    signal: AbortSignal,
    from?: SnapshotRecord,
  ): Promise<SessionData[]> {
    await using passing = from
      ? undefined
      : await this.#turn(which, ({ record }) => this.#parts.snapshots.passing(record))
    const snapshot = from ?? passing
    if (!snapshot) throw new Fault("internal", "there are no files to fork")
    failpoint("fork/frozen")
    const parent = this.#book.record(snapshot.session)
    const names = Array.from({ length: count }, (_, index) => (count > 1 && name ? `${name}-${index + 1}` : name))
    const made: Entry[] = []
    const forkSome = async (): Promise<void> => {
      while (names.length > 0) {
        const record = forked(parent, names.shift(), this.#parts.clock.now())
        made.push(await this.#births.make(record, snapshot.id, signal))
      }
    }
    try {
      await settled(Array.from({ length: Math.min(forksAtOnce, count) }, forkSome))
      failpoint("fork/made")
      return made.map((entry) => shown(entry.record))
    } catch (failure) {
      for (const entry of made) await this.delete(entry.id)
      throw failure
    }
  }

  rollback(which: string, snapshotId: string, signal: AbortSignal): Promise<SessionData> {
    const snapshot = this.#parts.snapshots.get(snapshotId)
    return this.#turn(which, (entry) => this.#lives.rollback(entry, snapshot, signal))
  }

  snapshot(which: string, how: { name?: string | undefined; isAutomatic?: boolean }) {
    return this.#turn(which, async (entry) => {
      const record = await this.#parts.snapshots.take(entry.record, how)
      entry.tookSnapshot()
      return shownSnapshot(record)
    })
  }

  keepAwake(which: string, ms: number): { awakeUntil: string } {
    this.#book.entry(which).keepAwake(ms)
    this.#parts.wake()
    return { awakeUntil: new Date(this.#parts.clock.now() + ms).toISOString() }
  }

  flush(): void {
    this.#book.flush()
  }

  /** Its turn, when it is where it was going to. */
  #turn<T>(which: string, work: (entry: Entry) => Promise<T>): Promise<T> {
    return this.#book.turn(which, async (entry) => {
      await entry.unfinished?.()
      return await work(this.#book.entry(entry.id))
    })
  }

  /** Lets go of everything; the sandboxes go on. */
  async close(): Promise<void> {
    try {
      this.#book.flush()
    } catch (failure) {
      this.#parts.log("warn", "sessions.flush", { message: messageOf(failure) })
    }
    for (const { live } of this.entries) if (live) await this.#parts.sandboxes.leave(live)
    this.#book.clear()
  }
}

/** Waits for all, then throws the first failure: nothing is still under way when the caller cleans up. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works)
  for (const result of results) if (result.status === "rejected") throw result.reason
}

function numberOf(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw new Fault("invalid", "that is not a cursor of ours")
  return Number(cursor)
}
