import type { SessionData, SnapshotData } from "./talk.ts"

export type State = SessionData["state"]
/** By their paths. */
export type Files = ReadonlyMap<string, string>

/** What was asked for and not answered yet. */
export type Doing =
  | { readonly op: "create" | "use" | "fork" | "snapshot" | "pause" | "resume" | "hibernate" }
  | { readonly op: "restore" | "stop" | "delete" }
  | { readonly op: "write"; readonly path: string; readonly text: string }
  | { readonly op: "rollback"; readonly files: Files }

/** What a client knows of a session: only what it was told. */
export interface SessionNote {
  readonly name: string
  /** As it was acknowledged last; before that it is being made. */
  state: State
  files: Files
  doing?: Doing | undefined
  /** Programs that go on by themselves, and what they have said. */
  programs: { readonly pid: number; readonly said: string }[]
  /** A shell, and the value of a variable in it. */
  shell?: { readonly name: string; value: string } | undefined
}

export interface SnapshotNote {
  readonly name: string
  id?: string | undefined
  readonly files: Files
  doing?: "create" | "delete" | undefined
}

/** Everything a client was told, by name: ids come with the answer, and that may never come. */
export class Notebook {
  readonly sessions = new Map<string, SessionNote>()
  readonly snapshots = new Map<string, SnapshotNote>()
}

type Found = State | "absent"

/** How a session may be found after the runner was killed: as it was, as it was to become, or stopped on the way. */
export function mayBe({ state, doing }: SessionNote): readonly Found[] {
  switch (doing?.op) {
    case undefined:
    case "fork":
    case "snapshot":
      return [state]
    case "create":
      return ["absent", "running"]
    case "use":
    case "write":
    case "resume":
      return [state, "running"]
    case "pause":
      return [state, "paused"]
    case "hibernate":
      return [state, "hibernated"]
    case "restore":
    case "rollback":
      return [state, "running", "hibernated"]
    case "stop":
      return [state, "stopped"]
    case "delete":
      return [state, "stopped", "absent"]
  }
}

/** What its files may be: all of one of these. */
export function mayHold({ files, doing }: SessionNote): readonly Files[] {
  if (doing?.op === "write") return [files, new Map([...files, [doing.path, doing.text]])]
  return doing?.op === "rollback" ? [files, doing.files] : [files]
}

/** Whether what ran in it before the runner was killed must run still. */
export function mustRunOn({ doing }: SessionNote, found: SessionData): boolean {
  const ends = doing !== undefined && ["hibernate", "stop", "delete", "rollback", "create"].includes(doing.op)
  return !ends && (found.state === "running" || found.state === "paused")
}

/** What does not fit what was acknowledged. */
export function misfits(
  book: Notebook,
  sessions: readonly SessionData[],
  snapshots: readonly SnapshotData[],
): string[] {
  const found = new Map(sessions.map((session) => [session.name, session]))
  const kept = new Map(snapshots.map((snapshot) => [snapshot.name ?? snapshot.id, snapshot]))
  return [
    ...[...book.sessions.values()].flatMap((note) => misfit(note, found.get(note.name))),
    ...sessions.filter(({ name }) => !book.sessions.has(name)).map(({ name }) => `${name} was never asked for`),
    ...[...book.snapshots.values()]
      .filter(({ name, doing }) => doing === undefined && !kept.has(name))
      .map(({ name }) => `the snapshot ${name} is gone`),
    ...[...kept.keys()]
      .filter((name) => !book.snapshots.has(name))
      .map((name) => `the snapshot ${name} was never asked for`),
  ]
}

function misfit(note: SessionNote, found: SessionData | undefined): string[] {
  const allowed = mayBe(note)
  const is = found?.state ?? "absent"
  if (allowed.includes(is)) return []
  const last = note.doing ? `, being asked to ${note.doing.op}` : ""
  const why = found?.reason === undefined ? "" : ` (${found.reason}: ${found.detail ?? ""})`
  return [`${note.name} was ${note.state}${last}, and is ${is}${why}`]
}

/** Brings the notes up to what is there: what was not acknowledged has happened or has not. */
export function settle(book: Notebook, sessions: readonly SessionData[], snapshots: readonly SnapshotData[]): void {
  const found = new Map(sessions.map((session) => [session.name, session]))
  for (const note of [...book.sessions.values()]) {
    const session = found.get(note.name)
    if (!session) {
      book.sessions.delete(note.name)
      continue
    }
    note.state = session.state
    if (mustRunOn(note, session)) continue
    note.programs = []
    note.shell = undefined
  }
  const kept = new Map(snapshots.map((snapshot) => [snapshot.name, snapshot]))
  for (const note of [...book.snapshots.values()]) {
    const snapshot = kept.get(note.name)
    if (!snapshot) book.snapshots.delete(note.name)
    else Object.assign(note, { id: snapshot.id, doing: undefined })
  }
}
