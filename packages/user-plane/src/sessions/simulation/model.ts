import type { State } from "../moves.ts"

/** What a client has asked of a session and not been answered, or been refused. */
export type Asked =
  | { readonly op: "create" | "pause" | "resume" | "hibernate" | "restore" | "stop" | "delete" | "use" }
  | { readonly op: "write"; readonly files: string }
  | { readonly op: "rollback"; readonly files: string }

/** What a client knows of a session: only what it was told. */
export interface Note {
  state: State
  files: string
  asked?: Asked | undefined
  /** Its first process was ended by somebody else. */
  hasDied: boolean
}

type Found = State | "absent"

/** How each may be found when it was not acknowledged, besides as it was: what was begun is finished, also when a part of it failed. */
const ends: Readonly<Record<Asked["op"], readonly Found[]>> = {
  create: ["absent", "running"],
  pause: ["paused"],
  resume: ["running"],
  hibernate: ["hibernated"],
  restore: ["running", "hibernated"],
  rollback: ["running", "hibernated"],
  stop: ["stopped"],
  delete: ["absent"],
  use: ["running", "hibernated"],
  write: ["running", "hibernated"],
}

/** How a session may be found when everything is at rest. */
export function mayBe({ state, asked, hasDied }: Note): readonly Found[] {
  const was: readonly Found[] = asked?.op === "create" ? [] : [state]
  const died: readonly Found[] = hasDied ? ["failed", "hibernated"] : []
  return [...was, ...(asked ? ends[asked.op] : []), ...died]
}

/** What its files may be: one of these. */
export function mayHold({ files, asked }: Note): readonly string[] {
  return asked?.op === "write" || asked?.op === "rollback" ? [files, asked.files] : [files]
}

/** What was not acknowledged has happened or has not: from now on it is as it was found. */
export function settle(note: Note, state: State, files: string): void {
  Object.assign(note, { state, files, asked: undefined, hasDied: false })
}
