import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Doing, Files, Notebook, SessionNote, SnapshotNote } from "./notebook.ts"
import type { SessionData, Talk } from "./talk.ts"

const sessionsMax = 8
const snapshotsMax = 4
const filesEach = 4
export const folder = "/home/user/day"

/** `nothing`: there was no need, or no room, for it. */
type Act = (note: SessionNote) => Promise<"nothing" | void>

/**
 * A day of a user with several things going on at once: everything a session can go through, in an order that the seed decides. Each
 * thing is written down before it is asked for and again when it was answered. It ends when nobody answers any more.
 */
export class Day {
  /** How often each thing was acknowledged. */
  readonly done = new Map<string, number>()
  /** What was refused though it is legal. */
  readonly failures: string[] = []
  readonly #talk: Talk
  readonly #book: Notebook
  readonly #random: () => number
  readonly #busy = new Set<string>()
  readonly #used = new Map<SnapshotNote, number>()
  readonly #names: () => string
  #isOver = false

  constructor(talk: Talk, book: Notebook, random: () => number, names: () => string) {
    this.#talk = talk
    this.#book = book
    this.#random = random
    this.#names = names
  }

  async live(workers: number): Promise<void> {
    await Promise.all(Array.from({ length: workers }, () => this.#work()))
  }

  /** No more is begun. */
  end(): void {
    this.#isOver = true
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const [what, act, note] = this.#next()
      this.#busy.add(note.name)
      try {
        const outcome = await act(note)
        note.doing = undefined
        if (outcome !== "nothing") this.#count(what)
      } catch (failure) {
        // Whether it happened is not known: it stays in the notes as it was asked for.
        this.#isOver = true
        if (!isGone(failure)) this.failures.push(`${what} of ${note.name}: ${codeOf(failure)} ${messageOf(failure)}`)
        return
      } finally {
        this.#busy.delete(note.name)
      }
    }
  }

  #next(): [what: string, act: Act, note: SessionNote] {
    const free = [...this.#book.sessions.values()].filter(({ name, doing }) => !this.#busy.has(name) && !doing)
    const isFull = this.#book.sessions.size >= sessionsMax
    if (free.length === 0 || (!isFull && this.#random() < 0.25)) return this.#birth()
    const note = this.#one(free)
    if (isFull && this.#random() < 0.3) return ["delete", (one) => this.#delete(one), note]
    const [what, act] = this.#one(this.#possible(note))
    return [what, act, note]
  }

  #birth(): [string, Act, SessionNote] {
    const snapshot = this.#random() < 0.3 ? this.#restorable() : undefined
    const note = this.#newNote(snapshot?.files ?? new Map())
    if (snapshot?.id !== undefined)
      return ["create from snapshot", (one) => this.#with(snapshot, (from) => this.#create(one, { from })), note]
    if (this.#random() < 0.7) return ["create", (one) => this.#create(one, {}), note]
    const rare = { limits: { pidsMax: 300 }, network: { mode: "none" as const } }
    return ["create cold", (one) => this.#create(one, rare), note]
  }

  /** Everything that is legal for it now. */
  #possible(note: SessionNote): [string, Act][] {
    const asleep: [string, Act][] = [
      ["restore", (one) => this.#move(one, "restore", "running")],
      ["delete", (one) => this.#delete(one)],
      ["rollback", (one) => this.#rollback(one)],
    ]
    const usable: [string, Act][] = [
      ["exec", (one) => this.#exec(one)],
      ["write", (one) => this.#write(one)],
      ["read", (one) => this.#read(one)],
      ["spawn", (one) => this.#spawn(one)],
      ["shell", (one) => this.#shell(one)],
      ["snapshot", (one) => this.#snapshot(one)],
      ["fork", (one) => this.#fork(one)],
    ]
    const awake: [string, Act][] = [
      ["hibernate", (one) => this.#move(one, "hibernate", "hibernated")],
      ["stop", (one) => this.#move(one, "stop", "stopped")],
      ["delete", (one) => this.#delete(one)],
      ["rollback", (one) => this.#rollback(one)],
    ]
    if (note.state === "running")
      return [...usable, ...usable, ...awake, ["pause", (one) => this.#move(one, "pause", "paused")]]
    if (note.state === "paused") return [...usable, ...awake, ["resume", (one) => this.#move(one, "resume", "running")]]
    return note.state === "hibernated" ? [...usable, ...asleep] : asleep
  }

  async #create(note: SessionNote, wishes: object): Promise<void> {
    note.doing = { op: "create" }
    const session = await this.#talk.call("session.create", { name: note.name, ...wishes })
    note.state = session.state
    this.#count(`from ${session.acquireSource}`)
  }

  async #move(
    note: SessionNote,
    op: "pause" | "resume" | "hibernate" | "restore" | "stop",
    state: SessionData["state"],
  ) {
    note.doing = { op }
    const session = await this.#talk.call(`session.${op}`, { id: note.name, ...(op === "stop" ? { graceMs: 0 } : {}) })
    if (session.state !== state) throw new Error(`it is ${session.state}, not ${state}`)
    note.state = state
    if (op === "hibernate" || op === "stop") forgetPrograms(note)
  }

  async #delete(note: SessionNote): Promise<void> {
    note.doing = { op: "delete" }
    await this.#talk.call("session.delete", { id: note.name })
    this.#book.sessions.delete(note.name)
  }

  async #exec(note: SessionNote): Promise<void> {
    const doing = this.#change(note)
    const { path, text } = doing
    const cmd = `mkdir -p ${folder} && printf %s '${text}' > ~/draft && mv ~/draft ${path}`
    const { exitCode } = await this.#talk.run(note.name, cmd)
    if (exitCode !== 0) throw new Error(`the command ended with ${exitCode}`)
    this.#changed(note, doing)
  }

  async #write(note: SessionNote): Promise<void> {
    const doing = this.#change(note)
    await this.#talk.write(note.name, doing.path, doing.text)
    this.#changed(note, doing)
  }

  async #read(note: SessionNote): Promise<"nothing" | void> {
    const [path, text] = [...note.files][0] ?? []
    if (path === undefined) return "nothing"
    note.doing = { op: "use" }
    const found = await this.#talk.read(note.name, path)
    if (found !== text) throw new Error(`${path} is ${JSON.stringify(found.slice(0, 40))}, not ${text?.slice(0, 40)}`)
    note.state = "running"
  }

  async #spawn(note: SessionNote): Promise<void> {
    note.doing = { op: "use" }
    const said = `program-${this.#names()}`
    const cmd = `echo ${said}; exec sleep 100000`
    const { pid } = await this.#talk.call("process.spawn", { session: note.name, cmd })
    note.programs.push({ pid, said })
    note.state = "running"
  }

  async #shell(note: SessionNote): Promise<void> {
    note.doing = { op: "use" }
    const value = this.#names()
    if (!note.shell) {
      const { shell } = await this.#talk.call("shell.open", { session: note.name })
      note.state = "running"
      const { exitCode } = await this.#talk.runInShell(note.name, shell, `KEPT=${value}`)
      if (exitCode === 0) note.shell = { name: shell, value }
      return
    }
    const { text } = await this.#talk.runInShell(note.name, note.shell.name, "echo $KEPT")
    if (text.trim() !== note.shell.value) throw new Error(`the shell said ${text}, not ${note.shell.value}`)
    note.state = "running"
  }

  async #snapshot(note: SessionNote): Promise<"nothing" | void> {
    if (this.#book.snapshots.size >= snapshotsMax) return this.#forgetSnapshot()
    const snapshot: SnapshotNote = { name: `s-${this.#names()}`, files: note.files, doing: "create" }
    this.#book.snapshots.set(snapshot.name, snapshot)
    note.doing = { op: "snapshot" }
    snapshot.id = (await this.#talk.call("snapshot.create", { session: note.name, name: snapshot.name })).id
    snapshot.doing = undefined
  }

  async #forgetSnapshot(): Promise<"nothing"> {
    const snapshot = this.#restorable()
    // What another part of the day uses is left to it.
    if (snapshot?.id === undefined || this.#used.has(snapshot)) return "nothing"
    snapshot.doing = "delete"
    await this.#talk.call("snapshot.delete", { id: snapshot.id })
    this.#book.snapshots.delete(snapshot.name)
    this.#count("snapshot deleted")
    return "nothing"
  }

  async #fork(note: SessionNote): Promise<"nothing" | void> {
    if (this.#book.sessions.size >= sessionsMax) return "nothing"
    const name = this.#names()
    const count = this.#random() < 0.5 ? 1 : 2
    const names = count === 1 ? [name] : [`${name}-1`, `${name}-2`]
    const children = names.map((one) => this.#newNote(note.files, one))
    for (const one of names) this.#busy.add(one)
    note.doing = { op: "fork" }
    try {
      const { sessions } = await this.#talk.call("session.fork", { id: note.name, count, name })
      if (sessions.length !== count) throw new Error(`there are ${sessions.length} forks, not ${count}`)
      for (const child of children) Object.assign(child, { state: "running", doing: undefined })
    } finally {
      for (const one of names) this.#busy.delete(one)
    }
  }

  async #rollback(note: SessionNote): Promise<"nothing" | void> {
    const snapshot = this.#restorable()
    if (!snapshot) return "nothing"
    note.doing = { op: "rollback", files: snapshot.files }
    await this.#with(snapshot, async (id) => {
      note.state = (await this.#talk.call("session.rollback", { id: note.name, snapshot: id })).state
    })
    note.files = snapshot.files
    forgetPrograms(note)
  }

  /** A snapshot that goes away while it is used would be a refusal. */
  async #with(snapshot: SnapshotNote, work: (id: string) => Promise<void>): Promise<void> {
    this.#used.set(snapshot, (this.#used.get(snapshot) ?? 0) + 1)
    await work(snapshot.id ?? "")
    const left = (this.#used.get(snapshot) ?? 0) - 1
    if (left > 0) this.#used.set(snapshot, left)
    else this.#used.delete(snapshot)
  }

  #restorable(): SnapshotNote | undefined {
    const ready = [...this.#book.snapshots.values()].filter(({ id, doing }) => id !== undefined && !doing)
    return ready.length > 0 ? this.#one(ready) : undefined
  }

  #newNote(files: Files, name = this.#names()): SessionNote {
    const note: SessionNote = { name, state: "starting", files, doing: { op: "create" }, programs: [] }
    this.#book.sessions.set(name, note)
    return note
  }

  #change(note: SessionNote): Extract<Doing, { op: "write" }> {
    const path = `${folder}/f${Math.floor(this.#random() * filesEach)}`
    const text = `${note.name}-${this.#names()}-${"x".repeat(Math.floor(this.#random() ** 4 * 30_000))}`
    const doing = { op: "write", path, text } as const
    note.doing = doing
    return doing
  }

  #changed(note: SessionNote, { path, text }: Extract<Doing, { op: "write" }>): void {
    note.files = new Map([...note.files, [path, text]])
    note.state = "running"
  }

  #count(what: string): void {
    this.done.set(what, (this.done.get(what) ?? 0) + 1)
  }

  #one<T>(things: readonly T[]): T {
    return things[Math.floor(this.#random() * things.length)] as T
  }
}

function forgetPrograms(note: SessionNote): void {
  note.programs = []
  note.shell = undefined
}

/** The runner does not answer any more, which is what the day ends with. */
function isGone(failure: unknown): boolean {
  const { code, message } = Fault.from(failure)
  // The test puts its own end away once the runner is dead, and may do so before it has read that it is.
  if (code === "cancelled" && message === "the client closed") return true
  return code === "unavailable" && /connection|nobody listens|could not connect/.test(message)
}

function codeOf(failure: unknown): string {
  return failure instanceof Fault ? failure.code : ""
}
