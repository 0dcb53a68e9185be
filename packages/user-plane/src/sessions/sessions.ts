import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import { Turns } from "@warren/base/turns.ts"
import { canPause, lackOf, type DriverName, type Usual } from "@warren/drivers/driver.ts"
import type { SnapshotId } from "@warren/drivers/sandbox-spec.ts"
import type { Received } from "@warren/protocol/contract.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { sessionCalls, SessionEvent } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import type { Pool } from "../pool/pool.ts"
import { Entry } from "./entry.ts"
import { canMove, moved, type Move, type State } from "./moves.ts"
import { madeUpName } from "./names.ts"
import type { ImageSource, Live, Sandboxes } from "./sandboxes.ts"
import { shown, type Reason, type SessionData, type SessionId, type SessionRecord } from "./session-record.ts"
import type { SessionStore } from "./session-store.ts"
import { shownSnapshot, type Snapshots } from "./snapshots.ts"
import { planOf, type Wishes } from "./wishes.ts"

type Input<K extends keyof typeof sessionCalls> = Received<typeof sessionCalls, K>
type Event = z.output<typeof SessionEvent>

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

const eventsKept = 2_000
const forksAtOnce = 4
const over: readonly State[] = ["stopped", "failed"]

/** The sessions of one user: made, used, put to sleep, woken, forked and ended, one thing at a time for each. */
export class Sessions {
  readonly events = new Journal<Event>(eventsKept, Date.now() * 1000)
  readonly #parts: SessionsParts
  readonly #turns = new Turns()
  /** All that are not over. */
  readonly #entries = new Map<SessionId, Entry>()
  readonly #touched = new Set<Entry>()
  /** What has happened and could not be written down: the database was locked, or full. Written as soon as it can be. */
  readonly #owed = new Map<SessionId, () => void>()

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  get entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  /** A session found on disk, as it is now. */
  async restoreEntry(record: SessionRecord, live: Live | undefined): Promise<void> {
    if (live) await equip(live, record)
    const entry = new Entry(record, this.#parts.clock)
    this.#entries.set(record.id, entry)
    if (live) this.#attach(entry, live)
  }

  async create(wishes: Wishes, signal: AbortSignal): Promise<SessionData> {
    const { from, key, name = madeUpName() } = wishes
    const base = from === undefined ? undefined : this.#parts.snapshots.get(from)
    const { images, sandboxes, usual } = this.#parts
    const image = base?.image ?? wishes.image ?? usual.image
    const driver = sandboxes.driver(wishes.driver ?? base?.plan.driver ?? usual.driver)
    const plan = planOf(wishes, driver, base?.plan.image ?? images.resolve(image), base?.plan)
    const now = this.#parts.clock.now()
    const reach = wishes.network?.mode === "proxy" ? wishes.network : { access: "list" as const, allow: [] }
    const record: SessionRecord = {
      ...{ id: newId("ses"), name, key, labels: wishes.labels, state: "starting", plan, image },
      ...{
        reach: { access: reach.access, allow: reach.allow },
        env: wishes.env,
        secrets: wishes.secrets,
        keys: wishes.keys,
      },
      ...{ ttlMs: wishes.ttlMs, lifeMs: wishes.lifeMs, idle: wishes.idle, snapshots: wishes.snapshots },
      ...{ createdAt: now, usedAt: now, base: base?.id, acquireSource: "cold", acquireMs: 0 },
    }
    return shown((await this.#make(record, base?.id, signal)).record)
  }

  async getOrCreate(
    wishes: Wishes & { key: string },
    signal: AbortSignal,
  ): Promise<{ session: SessionData; isNew: boolean }> {
    return this.#turns.take(`key:${wishes.key}`, async () => {
      const known = this.#parts.store.byKey(wishes.key)
      if (known) return { session: this.get(known.id), isNew: false }
      return { session: await this.create(wishes, signal), isNew: true }
    })
  }

  get(which: string): SessionData {
    return shown(this.record(which))
  }

  list({ cursor, limit, state, label }: Input<"session.list">): { items: SessionData[]; nextCursor?: string } {
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
      items: items.map(({ record }) => shown(this.#entries.get(record.id)?.record ?? record)),
      ...(rows.length > limit && last ? { nextCursor: String(last.number) } : {}),
    }
  }

  counts(): { running: number; all: number } {
    const running = [...this.#entries.values()].filter(({ live }) => live).length
    return { running, all: this.#parts.store.count() }
  }

  update({ id: which, network, ...changes }: Input<"session.update">): Promise<SessionData> {
    return this.#turn(which, async (entry) => {
      const { record } = entry
      if (network && network.mode !== record.plan.network)
        throw new Fault("unsupported", `a session with the network ${record.plan.network} cannot have another`)
      const reach = network?.mode === "proxy" ? { access: network.access, allow: network.allow } : record.reach
      const { name = record.name, labels = record.labels, env = record.env } = changes
      const ttlMs = changes.ttlMs === undefined ? record.ttlMs : (changes.ttlMs ?? undefined)
      const idle = changes.idle === undefined ? record.idle : (changes.idle ?? undefined)
      if (name !== record.name) this.#checkName(name)
      // Checked by the proxy first: rules that mean nothing are not written down.
      await entry.live?.wayOut?.allow(reach)
      this.#parts.store.atomically(() => {
        this.#write(entry, { ...record, name, labels, env, ttlMs, idle, reach })
        this.#parts.store.relabel(entry.record)
      })
      this.events.append({ id: entry.id, event: "changed", session: shown(entry.record) })
      entry.used()
      return shown(entry.record)
    })
  }

  /** Its sandbox, awake. Until the result is disposed, it counts as used. */
  async use(which: string, signal: AbortSignal): Promise<Use> {
    for (;;) {
      const entry = this.#entry(which)
      if (entry.live && entry.record.state === "running") {
        const use = entry.begin()
        this.#touched.add(entry)
        return new Use(entry.live, entry.record, use, () => this.#parts.wake())
      }
      await this.#turn(entry.id, () => this.#awaken(entry, signal))
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
    const { live, record } = this.#entry(which)
    if (live) return live
    throw new Fault("conflict", `the session is ${record.state}`, { subject: `session:${record.id}` })
  }

  pause(which: string): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#pause(entry))
  }

  resume(which: string): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#resume(entry))
  }

  hibernate(which: string, reason: Reason = "requested"): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#hibernate(entry, reason))
  }

  restore(which: string, signal: AbortSignal): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#restore(entry, signal))
  }

  stop(which: string, how: { graceMs?: number; reason?: Reason; dropsFiles?: boolean } = {}): Promise<SessionData> {
    return this.#turn(which, (entry) => this.#stop(entry, how))
  }

  /** Everything of it goes; its snapshots and its workspace stay. */
  delete(which: string): Promise<void> {
    return this.#turn(which, async (entry) => {
      const { live } = entry
      entry.live = undefined
      if (canMove(entry.record.state, "stop")) this.#move(entry, "stop", { isLeaving: true })
      else this.#write(entry, { ...entry.record, isLeaving: true })
      const { sandbox, plan } = entry.record
      if (sandbox !== undefined) await this.#parts.sandboxes.destroy(sandbox, plan, live?.wayOut)
      this.#parts.store.delete(entry.id)
      this.#entries.delete(entry.id)
      this.events.append({ id: entry.id, event: "deleted" })
    })
  }

  /** New sessions that begin with the files this one has at this moment. */
  async fork({ id: which, count, name }: Input<"session.fork">, signal: AbortSignal): Promise<SessionData[]> {
    await using snapshot = await this.#turn(which, ({ record }) => this.#parts.snapshots.passing(record))
    const made: Entry[] = []
    try {
      const { record } = this.#entry(snapshot.session)
      const numbers = Array.from({ length: count }, (_, index) => index + 1)
      const forkOne = async (): Promise<void> => {
        for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
          const fork = forked(
            record,
            count > 1 && name !== undefined ? `${name}-${number}` : name,
            this.#parts.clock.now(),
          )
          made.push(await this.#make(fork, snapshot.id, signal))
        }
      }
      await settled(Array.from({ length: Math.min(forksAtOnce, count) }, forkOne))
      return made.map((entry) => shown(entry.record))
    } catch (failure) {
      for (const entry of made) await this.delete(entry.id)
      throw failure
    }
  }

  /** Its files as they were; what it has written since is gone. */
  rollback(which: string, snapshotId: string, signal: AbortSignal): Promise<SessionData> {
    return this.#turn(which, async (entry) => {
      const snapshot = this.#parts.snapshots.get(snapshotId)
      const { record, live } = entry
      if (snapshot.plan.driver !== record.plan.driver)
        throw new Fault("conflict", "the snapshot is of another driver's sandbox")
      this.#move(entry, "rollback", {})
      entry.live = undefined
      let next: Live | undefined
      try {
        if (live) await this.#parts.sandboxes.stop(live)
        const plan = { ...record.plan, image: snapshot.plan.image, from: snapshot.id }
        next = await this.#parts.sandboxes.make(plan, record.id, signal)
        await equip(next, record)
        this.#move(entry, "ready", {
          sandbox: next.id,
          base: snapshot.id,
          image: snapshot.image,
          plan: { ...plan, from: undefined },
        })
        this.#attach(entry, next)
      } catch (failure) {
        // Nothing was lost: its files are those from before, and the next use starts it.
        if (next) await this.#parts.sandboxes.destroy(next.id, next.plan, next.wayOut)
        this.#finish(entry, "lose", { reason: "start", detail: messageOf(failure) })
        throw failure
      }
      if (record.sandbox !== undefined) await this.#parts.sandboxes.destroy(record.sandbox, record.plan)
      return shown(entry.record)
    })
  }

  snapshot(which: string, how: { name?: string | undefined; isAutomatic?: boolean }) {
    return this.#turn(which, async (entry) => {
      const record = await this.#parts.snapshots.take(entry.record, how)
      entry.tookSnapshot()
      return shownSnapshot(record)
    })
  }

  keepAwake(which: string, ms: number): { awakeUntil: string } {
    const entry = this.#entry(which)
    entry.keepAwake(ms)
    this.#parts.wake()
    return { awakeUntil: new Date(this.#parts.clock.now() + ms).toISOString() }
  }

  /** Writes down what is owed, and when sessions were last used: not at each use, which would cost more than the use. */
  flush(): void {
    for (const id of [...this.#owed.keys()]) this.#pay(id)
    if (this.#touched.size === 0) return
    this.#parts.store.atomically(() => {
      for (const { record } of this.#touched) this.#parts.store.touch(record.id, record.usedAt)
    })
    this.#touched.clear()
  }

  /** Lets go of everything; the sandboxes go on. */
  async close(): Promise<void> {
    try {
      this.flush()
    } catch (failure) {
      this.#parts.log("warn", "sessions.flush", { message: messageOf(failure) })
    }
    for (const { live } of this.#entries.values()) if (live) await this.#parts.sandboxes.leave(live)
    this.#entries.clear()
  }

  /** Its sandbox has ended and nobody asked for it. */
  fail(entry: Entry, reason: Reason, detail: string): Promise<void> {
    return this.#turn(entry.id, async () => {
      const { live } = entry
      if (!canMove(entry.record.state, "fail")) return
      this.#move(entry, "fail", { reason, detail })
      entry.live = undefined
      // What is left of it outside goes; its files stay.
      if (live) await this.#parts.sandboxes.stop(live, 0)
    })
  }

  #attach(entry: Entry, live: Live): void {
    entry.live = live
    void live.sandbox.ended.then(() => {
      if (entry.live !== live) return
      entry.hasDied = true
      this.#parts.wake()
    })
  }

  /** `from`: the snapshot its files are taken from. */
  async #make(record: SessionRecord, from: SnapshotId | undefined, signal: AbortSignal): Promise<Entry> {
    const { pool, clock } = this.#parts
    this.#checkFree(record)
    const begun = clock.monotonic()
    const waiting = from === undefined ? await pool.take(record.plan, signal) : undefined
    if (waiting) {
      try {
        await equip(waiting, record)
        const acquireMs = clock.monotonic() - begun
        const ready = { ...record, sandbox: waiting.id, state: "running", acquireSource: "pool", acquireMs } as const
        return this.#admit(ready, waiting)
      } catch (failure) {
        pool.giveBack(waiting)
        throw failure
      }
    }
    const entry = new Entry(record, clock)
    this.#add(entry)
    let live: Live | undefined
    try {
      live = await this.#parts.sandboxes.make({ ...record.plan, from }, record.id, signal)
      await equip(live, record)
      this.#move(entry, "ready", { sandbox: live.id, acquireMs: clock.monotonic() - begun })
      this.#attach(entry, live)
      return entry
    } catch (failure) {
      this.#entries.delete(record.id)
      this.#owed.set(record.id, () => this.#parts.store.delete(record.id))
      if (live) await this.#parts.sandboxes.destroy(live.id, live.plan, live.wayOut)
      this.#pay(record.id)
      throw failure
    }
  }

  /** A session that begins with a sandbox that was waiting: written down at once, whole. */
  #admit(record: SessionRecord, live: Live): Entry {
    const entry = new Entry(record, this.#parts.clock)
    this.#add(entry, live)
    this.#attach(entry, live)
    this.events.append({ id: record.id, event: "created", session: shown(record) })
    this.#parts.wake()
    return entry
  }

  #add(entry: Entry, live?: Live): void {
    const { store } = this.#parts
    store.atomically(() => {
      this.#checkFree(entry.record)
      store.add(entry.record)
      if (live) store.giveSandbox(live.id, entry.id)
    })
    this.#entries.set(entry.id, entry)
  }

  async #awaken(entry: Entry, signal: AbortSignal): Promise<void> {
    const { state } = entry.record
    if (state === "paused") await this.#resume(entry)
    else if (state === "hibernated") await this.#restore(entry, signal)
    else if (state !== "running") moved(entry.record, "resume")
  }

  async #pause(entry: Entry): Promise<SessionData> {
    moved(entry.record, "pause")
    await this.#pausable(entry).pause()
    return this.#move(entry, "pause", {})
  }

  async #resume(entry: Entry): Promise<SessionData> {
    moved(entry.record, "resume")
    await this.#pausable(entry).resume()
    entry.used()
    return this.#move(entry, "resume", { reason: undefined, detail: undefined })
  }

  #pausable(entry: Entry) {
    const live = this.live(entry.id)
    const driver = this.#parts.sandboxes.driver(live.plan.driver)
    if (canPause(driver, live.sandbox)) return live.sandbox
    throw new Fault("unsupported", `the driver ${driver.name} cannot pause: ${driver.abilities.reasons["pause"]}`)
  }

  async #hibernate(entry: Entry, reason: Reason): Promise<SessionData> {
    const { live } = entry
    this.#move(entry, "hibernate", {})
    entry.live = undefined
    if (live) await this.#parts.sandboxes.stop(live)
    return this.#finish(entry, "sleep", { reason })
  }

  async #restore(entry: Entry, signal: AbortSignal): Promise<SessionData> {
    const { sandbox, plan } = entry.record
    if (sandbox === undefined)
      throw new Fault("conflict", "its files were taken away when it ended", { subject: `session:${entry.id}` })
    this.#move(entry, "restore", {})
    let live: Live | undefined
    try {
      live = await this.#parts.sandboxes.start(sandbox, plan, signal)
      await equip(live, entry.record)
      entry.hasDied = false
      this.#move(entry, "ready", { reason: undefined, detail: undefined })
      this.#attach(entry, live)
      entry.used()
      return shown(entry.record)
    } catch (failure) {
      if (live) await this.#parts.sandboxes.stop(live, 0)
      const isLost = Fault.from(failure).code === "not_found"
      const detail = messageOf(failure)
      if (isLost) this.#finish(entry, "fail", { reason: "lost", detail, sandbox: undefined })
      else this.#finish(entry, "lose", { reason: "start", detail })
      throw failure
    }
  }

  async #stop(entry: Entry, how: { graceMs?: number; reason?: Reason; dropsFiles?: boolean }): Promise<SessionData> {
    const { reason = "requested", graceMs, dropsFiles = false } = how
    if (entry.record.state === "stopped") return shown(entry.record)
    const { live } = entry
    const { sandbox, plan } = entry.record
    // Given up before they go: a session must never seem to have files that are half gone.
    this.#move(entry, "stop", { reason, sandbox: dropsFiles ? undefined : sandbox })
    entry.live = undefined
    if (live) await this.#parts.sandboxes.stop(live, graceMs)
    if (dropsFiles && sandbox !== undefined) await this.#parts.sandboxes.destroy(sandbox, plan)
    return this.#finish(entry, "end", {})
  }

  #move(entry: Entry, move: Move, changes: Partial<SessionRecord>): SessionData {
    const state = moved(entry.record, move)
    this.#write(entry, { ...entry.record, ...changes, state })
    const isNew = move === "ready" && entry.record.createdAt === entry.record.usedAt
    this.events.append({ id: entry.id, event: isNew ? "created" : "changed", session: shown(entry.record) })
    this.#parts.log("info", "session.move", { session: entry.id, move, state, reason: entry.record.reason })
    if (over.includes(state)) this.#entries.delete(entry.id)
    else this.#entries.set(entry.id, entry)
    this.#parts.wake()
    return shown(entry.record)
  }

  /** The end of a move: what it says has happened. If it cannot be written down now, it is as soon as that can be. */
  #finish(entry: Entry, move: Move, changes: Partial<SessionRecord>): SessionData {
    this.#owed.set(entry.id, () => void this.#move(entry, move, changes))
    this.#pay(entry.id)
    return shown(entry.record)
  }

  #pay(id: SessionId): void {
    this.#owed.get(id)?.()
    this.#owed.delete(id)
  }

  #write(entry: Entry, record: SessionRecord): void {
    this.#parts.store.put(record)
    entry.record = record
  }

  /** One thing at a time for each session. */
  #turn<T>(which: string, work: (entry: Entry) => Promise<T>): Promise<T> {
    const { id } = this.record(which)
    // Looked up again when it is its turn: what came before may have changed or deleted it.
    return this.#turns.take(id, async () => {
      this.#pay(id)
      return await work(this.#entry(id))
    })
  }

  #entry(which: string): Entry {
    const known = this.#entries.get(which as SessionId)
    if (known) return known
    const record = this.record(which)
    return this.#entries.get(record.id) ?? new Entry(record, this.#parts.clock)
  }

  /** As it is written down; by id or name. */
  record(which: string): SessionRecord {
    const record = this.#entries.get(which as SessionId)?.record ?? this.#parts.store.find(which)
    if (!record)
      throw new Fault("not_found", `there is no session ${JSON.stringify(which)}`, { subject: `session:${which}` })
    return this.#entries.get(record.id)?.record ?? record
  }

  #checkFree({ name, key }: SessionRecord): void {
    const { sessionsMax, store } = this.#parts
    if (this.#entries.size >= sessionsMax)
      throw new Fault("limit", `there are ${sessionsMax} sessions already`, {
        hint: "delete some, or raise WARREN_SESSIONS_MAX",
      })
    this.#checkName(name)
    if (key !== undefined && store.byKey(key)) throw new Fault("conflict", `there is a session with the key ${key}`)
  }

  #checkName(name: string): void {
    if (this.#parts.store.find(name)) throw new Fault("conflict", `there is a session called ${name}`)
  }
}

/** What is this session's alone is given to its sandbox before anybody is told that it is there. */
async function equip({ wayOut }: Live, { reach, keys }: SessionRecord): Promise<void> {
  if (!wayOut) return
  await wayOut.allow(reach)
  wayOut.lend(keys)
}

/** A session being used: its sandbox, and what its programs are given. */
export class Use implements Disposable {
  readonly live: Live
  readonly record: SessionRecord
  readonly #use: Disposable
  readonly #done: () => void

  constructor(live: Live, record: SessionRecord, use: Disposable, done: () => void) {
    this.live = live
    this.record = record
    this.#use = use
    this.#done = done
  }

  [Symbol.dispose](): void {
    this.#use[Symbol.dispose]()
    this.#done()
  }
}

function forked(parent: SessionRecord, name: string | undefined, now: number): SessionRecord {
  return {
    ...parent,
    ...{ id: newId("ses"), name: name ?? madeUpName(), key: undefined, state: "starting", parent: parent.id },
    ...{ createdAt: now, usedAt: now, sandbox: undefined, reason: undefined, detail: undefined, acquireSource: "cold" },
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
