import { Files, type FileEntry } from "@warren/drivers/init/files.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import type { fileCalls } from "@warren/protocol/user-plane/files.ts"
import type { Sessions } from "../sessions/sessions.ts"
import { Download, Upload } from "./transfer.ts"

type Calls = typeof fileCalls

/** Files of sessions, touched inside by init: no path leads out. */
export function fileHandlers(sessions: Sessions): Handlers<Calls> {
  const files = async <T>(session: string, signal: AbortSignal, work: (files: Files) => Promise<T>): Promise<T> => {
    using use = await sessions.use(session, signal)
    return await work(new Files(use.live.sandbox))
  }
  const who = ({ user }: { user?: string | undefined }) => (user === undefined ? {} : { user })
  const done = { ok: true } as const
  return {
    "file.read": async ({ session, path, offset, limit, ...rest }, { signal }) => {
      const part = { ...(offset === undefined ? {} : { offset }), ...(limit === undefined ? {} : { limit }) }
      return Download.open(await sessions.use(session, signal), path, { ...part, ...who(rest) }, signal)
    },
    "file.write": async ({ session, path, mode, parents, append, atomic, owner, ...rest }, { signal }) => {
      const given = { ...(mode === undefined ? {} : { mode }), ...(owner === undefined ? {} : { owner }) }
      const how = { parents, append, atomic, ...given, ...who(rest) }
      return Upload.open(await sessions.use(session, signal), path, how, signal)
    },
    "file.list": ({ session, path, depth, limit, metadata, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        const { entries, truncated } = await at.list(path, { depth, limit, ...noted(metadata), ...who(rest) })
        return { entries: entries.map((entry) => shown(entry, path)), truncated }
      }),
    "file.stat": ({ session, path, follow, metadata, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        const entry = await at.stat(path, { follow, ...noted(metadata), ...who(rest) })
        return shown({ ...entry, name: nameOf(path) }, parentOf(path))
      }),
    "file.mark": ({ session, path, metadata, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        await at.mark(path, { prefix: metadataPrefix, values: metadata, ...who(rest) })
        return done
      }),
    "file.mkdir": ({ session, path, parents, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        await at.makeFolder(path, { parents, ...who(rest) })
        return done
      }),
    "file.move": ({ session, path, to, overwrite, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        await at.move(path, to, { overwrite, ...who(rest) })
        return done
      }),
    "file.remove": ({ session, path, recursive, ...rest }, { signal }) =>
      files(session, signal, async (at) => {
        await at.remove(path, { recursive, ...who(rest) })
        return done
      }),
    "file.watch": (asked, { signal }) => watch(sessions, asked, signal),
  }
}

async function* watch(
  sessions: Sessions,
  { session, path, recursive, user, isAnnounced }: Received<Calls, "file.watch">,
  signal: AbortSignal,
) {
  using use = await sessions.use(session, signal)
  const changes = await new Files(use.live.sandbox).watch(
    path,
    { recursive, ...(user === undefined ? {} : { user }) },
    signal,
  )
  let seq = 0
  if (isAnnounced) yield { seq: ++seq, item: { kind: "ready" as const, path } }
  for await (const change of changes) yield { seq: ++seq, item: change }
}

/** Where programs inside look for it, too: an extended attribute, named as those of E2B's sandboxes are. */
const metadataPrefix = "user.e2b."

function noted(isAsked: boolean): { marks?: string } {
  return isAsked ? { marks: metadataPrefix } : {}
}

function shown({ nameBase64, name, marks, ...entry }: FileEntry, folder: string) {
  const readable = name ?? Buffer.from(nameBase64 ?? "", "base64").toString()
  const metadata = marks ? { metadata: marks } : {}
  return { ...entry, ...metadata, name: nameOf(readable), path: `${folder.replace(/\/+$/, "")}/${readable}` }
}

const nameOf = (path: string): string => path.replace(/\/+$/, "").split("/").at(-1) ?? ""
const parentOf = (path: string): string => path.replace(/\/+$/, "").split("/").slice(0, -1).join("/")
