import { Fault } from "@warren/base/fault.ts"
import type { SessionData, Talk } from "../runner/talk.ts"
import type { Fact } from "./story.ts"

type State = SessionData["state"]

/** That there is no such session. */
export function noSession(name: string): Fact {
  return async (talk) => {
    const found = await sessionOf(talk, name)
    return found && `it is ${found.state}`
  }
}

interface Wanted {
  /** Files it has, looked at only while it runs: looking would wake it. */
  readonly files?: Readonly<Record<string, string>>
  /** A program that goes on in it, and what it has said. */
  readonly program?: () => { readonly pid: number; readonly said: string }
  readonly label?: string
}

/** That a session is in one of these states, with everything it must have. */
export function session(name: string, states: readonly State[], wanted: Wanted = {}): Fact {
  return async (talk) => {
    const found = await sessionOf(talk, name)
    if (!found) return "it is not there"
    if (!states.includes(found.state)) return `it is ${found.state} (${found.reason ?? ""} ${found.detail ?? ""})`
    if (wanted.label !== undefined && found.labels["of"] !== wanted.label) return `its label is ${found.labels["of"]}`
    return found.state === "running" ? inside(talk, name, wanted) : undefined
  }
}

async function inside(talk: Talk, name: string, { files = {}, program }: Wanted): Promise<string | undefined> {
  for (const [path, text] of Object.entries(files)) {
    const held = await talk.read(name, path).catch((failure: unknown) => Fault.from(failure).message)
    if (held !== text) return `${path} holds ${JSON.stringify(held.slice(0, 60))}`
  }
  if (!program) return undefined
  const { pid, said } = program()
  // It may go on; but whoever was not told of it has none.
  if (pid === 0) return "nobody was told of its program"
  const { isRunning } = await talk.call("process.status", { session: name, pid })
  if (!isRunning) return `its program ${pid} has ended`
  const { text } = await talk.call("process.readStdout", { session: name, pid, waitMs: 5_000, limit: said.length })
  return text === said ? undefined : `its program said ${JSON.stringify(text)}`
}

async function sessionOf(talk: Talk, name: string): Promise<SessionData | undefined> {
  return (await talk.sessions()).find((one) => one.name === name)
}

/** Whatever can be listed by a name: that it is, or is not, among those of its kind. */
export function listed(kind: keyof typeof kinds, name: string, isThere: boolean): Fact {
  return async (talk) => {
    const isFound = (await kinds[kind](talk)).includes(name)
    return isFound === isThere ? undefined : isFound ? "it is there" : "it is not there"
  }
}

/** What there is of each kind, by name. */
export const kinds = {
  // One that was not given a name is known by its label.
  session: async (talk: Talk) =>
    (await talk.sessions()).map(({ name, labels }) => (labels["of"]?.endsWith("keyed") ? labels["of"] : name)),
  snapshot: async (talk: Talk) => (await talk.snapshots()).map(({ name, id }) => name ?? id),
  workspace: async (talk: Talk) => (await talk.call("workspace.list", { limit: 200 })).items.map(({ name }) => name),
  image: async (talk: Talk) =>
    (await talk.call("image.list", {})).items.flatMap(({ names, isBuiltIn }) =>
      isBuiltIn ? [] : names.length === 0 ? ["without a name"] : names,
    ),
  secret: async (talk: Talk) => (await talk.call("secrets.list", { limit: 200 })).items.map(({ name }) => name),
  tunnel: async (talk: Talk) => (await talk.call("tunnel.list", { limit: 200 })).items.map(({ name }) => name),
}

/** What is there and was never asked for, or is there twice. */
export async function strangers(talk: Talk, subjects: Iterable<string>): Promise<string[]> {
  const known = new Set(subjects)
  const found: string[] = []
  for (const [kind, list] of Object.entries(kinds)) {
    const names = await list(talk)
    for (const [index, name] of names.entries()) {
      if (!known.has(`${kind}:${name}`)) found.push(`${kind} ${name} was never asked for`)
      if (names.indexOf(name) !== index) found.push(`${kind} ${name} is there twice`)
    }
  }
  return found
}
