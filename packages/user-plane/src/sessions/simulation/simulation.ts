import { ManualClock } from "@warren/base/clock.ts"
import { onFailpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { randomFrom } from "@warren/drivers/oci/testing/random.ts"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import { openEngine, type Engine } from "../engine.ts"
import { sessionMigrations } from "../session-store.ts"
import { snapshotMigrations } from "../snapshot-store.ts"
import { mayBe, mayHold, settle, type Asked, type Note } from "./model.ts"
import { straysOf } from "./strays.ts"
import { surroundingsOf } from "./surroundings.ts"
import { Dead, Life, World } from "./world.ts"

/** Everything that can happen, to one of a few sessions. `isWaited`: before anything else happens. */
export type Happening =
  | { readonly what: Asked["op"] | "snapshot" | "fork" | "die"; readonly which: number; readonly isWaited: boolean }
  /** The runner dies: now, or at that failpoint from here. `trip`: what is under way there fails. */
  | { readonly what: "kill" | "trip"; readonly passes: number }
  /** A driver's call from here fails; the database takes no writes for a while. */
  | { readonly what: "fail" | "full"; readonly calls: number }
  | { readonly what: "advance" | "jump"; readonly ms: number }
  /** `check`: everything comes to rest and is looked at. */
  | { readonly what: "restart" | "check" }

const never = new AbortController().signal
const restMs = 11_000
const hour = 3_600_000

/** The sessions of one user on a machine that is a table, with runners that come and go. The code of sessions is the real one. */
export class Simulation {
  static readonly database = new Database(":memory:", { migrations: [...sessionMigrations, ...snapshotMigrations] })
  readonly #random: () => number
  readonly #world = new World()
  readonly #book = new Map<string, Note>()
  readonly #snapshots = new Map<string, string>()
  readonly #under = new Set<Promise<void>>()
  #clock = new ManualClock()
  #life: Life
  #engine: Engine | undefined
  #passesLeft = 0
  #passesToTrip = 0
  #writesToFail = 0
  /** What could not be taken back then is found by the next runner. */
  #hasFailed = false
  #count = 0

  constructor(seed: number) {
    this.#random = randomFrom(seed)
    this.#life = new Life(this.#world, this.#random)
  }

  /** Plays it to its end, kills what runs, and takes everything away. Throws when something is not as it must be. */
  async play(history: readonly Happening[]): Promise<void> {
    for (const table of ["sessions", "sandboxes", "snapshots"]) Simulation.database.run(`DELETE FROM ${table}`)
    using _ = onFailpoint((name) => this.#pass(name))
    try {
      await this.#open()
      for (const happening of history) await this.#happen(happening)
      await this.#rest()
      await this.#look("at rest")
      await this.#kill()
      await this.#open()
      await this.#look("after the last death")
      await this.#removeAll()
    } finally {
      // Whatever it still does must not be found by the next.
      await this.#kill()
    }
  }

  async #happen(happening: Happening): Promise<void> {
    if ("which" in happening) return this.#ask(happening.what, happening.which, happening.isWaited)
    switch (happening.what) {
      case "kill":
        this.#passesLeft = happening.passes
        return happening.passes === 0 ? this.#renew() : undefined
      case "trip":
        this.#hasFailed = true
        this.#passesToTrip = happening.passes
        return
      case "fail":
        this.#hasFailed = true
        this.#life.failsIn = happening.calls
        return
      case "full":
        this.#hasFailed = true
        this.#writesToFail = happening.calls
        return
      case "advance":
        return this.#clock.advance(happening.ms)
      case "jump":
        return this.#clock.jump(happening.ms)
      case "check":
        await this.#rest()
        return this.#look("on the way")
      case "restart":
        await this.#rest()
        await this.#close()
        return this.#open()
    }
  }

  /** Something is asked for, if it can be now. */
  async #ask(what: Asked["op"] | "snapshot" | "fork" | "die", which: number, isWaited: boolean): Promise<void> {
    const name = `s${which}`
    const note = this.#book.get(name)
    if (note?.asked || (!note && what !== "create") || (note && what === "create")) return
    const life = this.#life
    const work = note ? this.#actOn(name, note, what) : this.#create(name)
    const done = work.catch((failure: unknown) => refused(failure, life)).finally(() => this.#under.delete(done))
    this.#under.add(done)
    if (isWaited) await done
    if (this.#life.isOver) await this.#renew()
  }

  /** What is told to the client, and what it then knows. */
  async #actOn(name: string, note: Note, what: Asked["op"] | "snapshot" | "fork" | "die"): Promise<void> {
    const { sessions } = this.#running
    switch (what) {
      case "die":
        return this.#die(name, note)
      case "snapshot":
        return this.#snapshot(name, note)
      case "fork":
        return this.#fork(name, note)
      case "write":
      case "use":
        return this.#use(name, note, what)
      case "rollback":
        return this.#rollback(name, note)
      case "delete":
        note.asked = { op: what }
        await sessions.delete(name)
        this.#book.delete(name)
        return
      case "restore":
        return this.#move(note, what, () => sessions.restore(name, never))
      case "stop":
        return this.#move(note, what, () => sessions.stop(name))
      case "pause":
      case "resume":
      case "hibernate":
        return this.#move(note, what, () => sessions[what](name))
      case "create":
    }
  }

  async #move(
    note: Note,
    op: "pause" | "resume" | "hibernate" | "restore" | "stop",
    act: () => Promise<{ state: Note["state"] }>,
  ) {
    note.asked = { op }
    note.state = (await act()).state
    note.asked = undefined
  }

  async #create(name: string): Promise<void> {
    const note: Note = { state: "starting", files: "", asked: { op: "create" }, hasDied: false }
    this.#book.set(name, note)
    const proxied = this.#random() < 0.5
    const wishes = { name, network: proxied ? {} : { mode: "none" } }
    const parsed = sessionCalls["session.create"].in.parse(proxied ? { name } : wishes)
    note.state = (await this.#running.sessions.create(parsed, never)).state
    note.asked = undefined
  }

  async #use(name: string, note: Note, op: "write" | "use"): Promise<void> {
    const files = `${name} ${++this.#count}`
    note.asked = op === "write" ? { op, files } : { op }
    using use = await this.#running.sessions.use(name, never)
    const box = this.#world.boxes.get(use.live.id)
    this.#life.check()
    if (op === "write" && box?.process) note.files = box.files = files
    note.state = "running"
    note.asked = undefined
  }

  async #snapshot(name: string, note: Note): Promise<void> {
    const label = `n${++this.#count}`
    // Its files stand still while the session's turn lasts.
    const { files } = note
    note.asked = { op: "use" }
    const { id } = await this.#running.sessions.snapshot(name, { name: label })
    this.#snapshots.set(id, files)
    note.asked = undefined
  }

  async #fork(name: string, note: Note): Promise<void> {
    const child = `f${++this.#count}`
    const made: Note = { state: "running", files: note.files, asked: { op: "create" }, hasDied: false }
    this.#book.set(child, made)
    await this.#running.sessions.fork({ id: name, count: 1, name: child }, never)
    made.asked = undefined
  }

  async #rollback(name: string, note: Note): Promise<void> {
    const [snapshot] = this.#snapshots
    if (!snapshot) return
    const [id, files] = snapshot
    note.asked = { op: "rollback", files }
    note.state = (await this.#running.sessions.rollback(name, id, never)).state
    Object.assign(note, { files, asked: undefined, hasDied: false })
  }

  async #die(name: string, note: Note): Promise<void> {
    const { sandbox } = this.#running.sessions.record(name)
    if (sandbox === undefined || !this.#world.boxes.get(sandbox)?.process) return
    this.#world.end(sandbox)
    note.hasDied = true
  }

  #pass(name: string): void {
    this.#life.check()
    if (this.#passesToTrip > 0 && canFail(name) && --this.#passesToTrip === 0)
      throw new Fault("unavailable", `${name} was told to fail`)
    if (this.#passesLeft > 0 && --this.#passesLeft === 0) {
      this.#life.isOver = true
      this.#life.check()
    }
  }

  get #running(): Engine {
    this.#life.check()
    if (!this.#engine) throw new Dead("there is no runner")
    return this.#engine
  }

  /** The disk is full for so many writes. */
  #refusesWrite(): boolean {
    return this.#writesToFail > 0 && this.#writesToFail-- > 0
  }

  /** Everything under way ends, what is owed is written, and what is due is done. */
  async #rest(): Promise<void> {
    this.#writesToFail = 0
    this.#life.failsIn = 0
    this.#passesLeft = 0
    this.#passesToTrip = 0
    await Promise.all(this.#under)
    if (this.#life.isOver) return this.#renew()
    await this.#clock.advance(restMs)
    await Promise.all(this.#under)
  }

  async #renew(): Promise<void> {
    await this.#kill()
    await this.#open()
    await this.#look("after a death")
  }

  async #kill(): Promise<void> {
    this.#life.isOver = true
    this.#writesToFail = 0
    this.#passesToTrip = 0
    await Promise.all(this.#under)
    await this.#close()
  }

  async #close(): Promise<void> {
    await this.#engine?.[Symbol.asyncDispose]()
    this.#engine = undefined
  }

  /** May die on the way as often as it is told to. */
  async #open(): Promise<void> {
    for (;;) {
      this.#clock = new ManualClock(this.#clock.now() + Math.floor(this.#random() * hour))
      this.#life = new Life(this.#world, this.#random)
      this.#hasFailed = false
      try {
        const around = { clock: this.#clock, database: Simulation.database, refusesWrite: () => this.#refusesWrite() }
        this.#engine = await openEngine(surroundingsOf(this.#life, this.#world, around))
        return
      } catch (failure) {
        if (!(failure instanceof Dead)) throw failure
      }
    }
  }

  /** Nothing acknowledged is lost or doubled (I6), and nothing is without an owner (I7). */
  async #look(when: string): Promise<void> {
    // What fills itself has done so: nothing here takes longer than a turn of the event loop.
    await new Promise(setImmediate)
    if (this.#life.isOver) return this.#renew()
    const { sessions } = this.#running
    const found = new Map(sessions.list({ limit: 200 }).items.map((session) => [session.name, session]))
    const wrong: string[] = []
    for (const [name, note] of [...this.#book]) wrong.push(...this.#lookAt(name, note, found.get(name)?.state))
    for (const name of found.keys()) if (!this.#book.has(name)) wrong.push(`${name} was never asked for`)
    if (!this.#hasFailed) wrong.push(...straysOf(this.#running, this.#world, this.#snapshots.keys()))
    if (wrong.length > 0) throw new Error(`${when}: ${wrong.join("; ")}`)
  }

  #lookAt(name: string, note: Note, state: Note["state"] | undefined): string[] {
    if (!mayBe(note).includes(state ?? "absent"))
      return [`${name} was ${note.state}, asked to ${note.asked?.op ?? "nothing"}, and is ${state ?? "absent"}`]
    if (state === undefined) {
      this.#book.delete(name)
      return []
    }
    const { sandbox } = this.#running.sessions.record(name)
    const files = sandbox === undefined ? undefined : this.#world.boxes.get(sandbox)?.files
    if (files === undefined) return [`${name} has no files any more`]
    if (!mayHold(note).includes(files)) return [`${name} holds "${files}", not "${mayHold(note).join('" or "')}"`]
    const process = sandbox === undefined ? undefined : this.#world.boxes.get(sandbox)?.process
    const isFrozen = process?.isFrozen ?? state === "paused"
    if ((state === "running" || state === "paused") && isFrozen !== (state === "paused"))
      return [`${name} is ${state}, and what is in it ${isFrozen ? "stands still" : "goes on"}`]
    settle(note, state, files)
    return []
  }

  async #removeAll(): Promise<void> {
    const { sessions, snapshots } = this.#running
    for (const { id } of sessions.list({ limit: 200 }).items) await sessions.delete(id)
    for (const { id } of snapshots.list({ limit: 200 }).items) await snapshots.delete(id)
    this.#book.clear()
    this.#snapshots.clear()
    await this.#look("when everything was taken away")
  }
}

/** What follows in the same breath cannot fail, so that nothing is there to take it back; and a boot that fails is a death. */
function canFail(name: string): boolean {
  return (
    !["session/admitted", "session/made", "session/taken", "session/written"].includes(name) &&
    !name.startsWith("boot/")
  )
}

/** Whether it has happened is not known: it stays in the notes as it was asked for. Only faults may be told, and death. */
function refused(failure: unknown, life: Life): void {
  if (!life.isOver && !(failure instanceof Fault)) throw failure
}
