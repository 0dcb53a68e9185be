import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Turns } from "@warren/base/turns.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { SessionEvent } from "@warren/protocol/user-plane/sessions.ts"
import type { z } from "zod"
import { Entry } from "./entry.ts"
import { moved, type Move, type State } from "./moves.ts"
import type { Live } from "./sandboxes.ts"
import { shown, type SessionData, type SessionId, type SessionRecord } from "./session-record.ts"
import type { SessionStore } from "./session-store.ts"

export interface BookParts {
  readonly store: SessionStore
  readonly clock: Clock
  readonly log: Log
  /** Sessions that are not over; one more is refused. */
  readonly sessionsMax: number
  /** Something has changed that may be due at another time. */
  wake(): void
}

const eventsKept = 2_000
const over: ReadonlySet<State> = new Set(["stopped", "failed"])

/** What is known of sessions: on disk, and in memory those that are not over. The one place where a session changes its state. */
export class SessionBook {
  readonly events = new Journal<z.output<typeof SessionEvent>>(eventsKept, Date.now() * 1000)
  readonly #parts: BookParts
  readonly #turns = new Turns()
  readonly #entries = new Map<SessionId, Entry>()
  readonly #touched = new Set<Entry>()
  /** What has happened and could not be written down: the database was locked, or full. Written as soon as it can be. */
  readonly #owed = new Map<SessionId, () => void>()

  constructor(parts: BookParts) {
    this.#parts = parts
  }

  /** All that are not over. */
  get entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  /** As it is written down; by id or name. */
  record(which: string): SessionRecord {
    const record = this.#entries.get(which as SessionId)?.record ?? this.#parts.store.find(which)
    if (!record)
      throw new Fault("not_found", `there is no session ${JSON.stringify(which)}`, { subject: `session:${which}` })
    return this.current(record)
  }

  /** A record that was read, as it is now. */
  current(record: SessionRecord): SessionRecord {
    return this.#entries.get(record.id)?.record ?? record
  }

  /** One that is not over; by id or name. */
  known(which: string): Entry | undefined {
    const found = this.#entries.get(which as SessionId)
    if (found) return found
    const record = this.#parts.store.find(which)
    return record && this.#entries.get(record.id)
  }

  entry(which: string): Entry {
    return this.known(which) ?? new Entry(this.record(which), this.#parts.clock)
  }

  /** One thing at a time for each session. */
  turn<T>(which: string, work: (entry: Entry) => Promise<T>): Promise<T> {
    const { id } = this.record(which)
    // Looked up again when it is its turn: what came before may have changed or deleted it.
    return this.#turns.take(id, async () => {
      this.#pay(id)
      return await work(this.entry(id))
    })
  }

  /** One thing at a time for each key, whether or not there is a session with it. */
  turnOfKey<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.take(`key:${key}`, work)
  }

  /** Refuses when there are too many, or another has that name or key. */
  checkFree({ name, key }: SessionRecord): void {
    const { sessionsMax, store } = this.#parts
    if (this.#entries.size >= sessionsMax)
      throw new Fault("limit", `there are ${sessionsMax} sessions already`, {
        hint: "delete some, or raise WARREN_SESSIONS_MAX",
      })
    this.checkName(name)
    if (key !== undefined && store.byKey(key)) throw new Fault("conflict", `there is a session with the key ${key}`)
  }

  checkName(name: string): void {
    if (this.#parts.store.find(name)) throw new Fault("conflict", `there is a session called ${name}`)
  }

  /** A new one; `live`: the sandbox that waited for it, written down with it, whole. */
  add(entry: Entry, live?: Live): void {
    const { store } = this.#parts
    store.atomically(() => {
      this.checkFree(entry.record)
      store.add(entry.record)
      if (live) store.giveSandbox(live.id, entry.id)
    })
    this.#entries.set(entry.id, entry)
    if (live) this.#tell(entry, "created")
  }

  /** One that was found on disk. */
  keep(entry: Entry): void {
    this.#entries.set(entry.id, entry)
  }

  /** One that never came to be. Its record goes as soon as `undo` is done, or when it can be written. */
  async forget(entry: Entry, undo: () => Promise<void>): Promise<void> {
    this.#entries.delete(entry.id)
    this.#owed.set(entry.id, () => this.#parts.store.delete(entry.id))
    await undo()
    this.#pay(entry.id)
  }

  delete(entry: Entry): void {
    this.#parts.store.delete(entry.id)
    this.#entries.delete(entry.id)
    failpoint("session/deleted")
    this.events.append({ id: entry.id, event: "deleted" })
  }

  /** `also`: what must change with it, or not at all. */
  write(entry: Entry, record: SessionRecord, also?: () => void): void {
    this.#parts.store.atomically(() => {
      this.#parts.store.put(record)
      also?.()
    })
    failpoint("session/written")
    entry.record = record
  }

  /** What can be changed while it lives. */
  change(entry: Entry, changes: Partial<SessionRecord>): SessionData {
    const next = { ...entry.record, ...changes }
    this.write(entry, next, () => this.#parts.store.relabel(next))
    entry.used()
    return this.#tell(entry, "changed")
  }

  move(entry: Entry, move: Move, changes: Partial<SessionRecord>): SessionData {
    const state = moved(entry.record, move)
    this.write(entry, { ...entry.record, ...changes, state })
    this.#parts.log("info", "session.move", { session: entry.id, move, state, reason: entry.record.reason })
    if (over.has(state)) this.#entries.delete(entry.id)
    else this.#entries.set(entry.id, entry)
    const isNew = move === "ready" && entry.record.createdAt === entry.record.usedAt
    return this.#tell(entry, isNew ? "created" : "changed")
  }

  /** Says that something of it has changed which is not written down here. One that is gone has nothing to tell. */
  announce(which: string): void {
    const known = this.#entries.get(which as SessionId)?.record ?? this.#parts.store.find(which)
    if (known) this.events.append({ id: known.id, event: "changed", session: shown(known) })
  }

  /** The end of a move: what it says has happened. If it cannot be written down now, it is as soon as that can be. */
  finish(entry: Entry, move: Move, changes: Partial<SessionRecord>): SessionData {
    this.#owed.set(entry.id, () => void this.move(entry, move, changes))
    this.#pay(entry.id)
    return shown(entry.record)
  }

  /** Something failed on its way: what is left of it is done by whoever comes next, and nobody has to come. */
  postpone(entry: Entry, rest: () => Promise<void>): void {
    entry.unfinished = rest
    this.#parts.wake()
  }

  /** Its sandbox runs, and is watched. */
  attach(entry: Entry, live: Live): void {
    entry.live = live
    // Of this one nobody knows it; of the one before it is over.
    entry.hasDied = false
    void live.sandbox.ended.then(() => {
      if (entry.live !== live) return
      entry.hasDied = true
      this.#parts.wake()
    })
  }

  /** It was used: written down with the next `flush`. */
  touch(entry: Entry): void {
    this.#touched.add(entry)
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

  clear(): void {
    this.#entries.clear()
  }

  #tell(entry: Entry, event: "created" | "changed"): SessionData {
    const session = shown(entry.record)
    this.events.append({ id: entry.id, event, session })
    this.#parts.wake()
    return session
  }

  #pay(id: SessionId): void {
    this.#owed.get(id)?.()
    this.#owed.delete(id)
  }
}
