import type { FileEntry } from "../plane.ts"
import type { Inside, People } from "./inside.ts"

const types: Readonly<Partial<Record<FileEntry["type"], string>>> = {
  file: "FILE_TYPE_FILE",
  dir: "FILE_TYPE_DIRECTORY",
  symlink: "FILE_TYPE_SYMLINK",
}
const letters: Readonly<Record<FileEntry["type"], string>> = {
  ...{ file: "", dir: "d", symlink: "L", fifo: "p", socket: "S", char: "Dc", block: "D" },
}
const special = [
  [0o4000, "u"],
  [0o2000, "g"],
  [0o1000, "t"],
] as const
/** Of whom every sandbox knows the name. */
const usualNames: ReadonlyMap<number, string> = new Map([
  [0, "root"],
  [1000, "user"],
])
const usual: People = { homes: new Map(), users: usualNames, groups: usualNames }

/** Entries as their clients know them. A link shows as what it leads to, with where that is. */
export async function entryShapes(inside: Inside, entries: readonly FileEntry[]): Promise<object[]> {
  const isUsual = entries.every(({ uid, gid }) => usualNames.has(uid) && usualNames.has(gid))
  const people = isUsual ? usual : await inside.people()
  return Promise.all(entries.map((entry) => entryShape(inside, entry, people)))
}

async function entryShape(inside: Inside, entry: FileEntry, people: People): Promise<object> {
  const target = entry.type === "symlink" ? await leadsTo(inside, entry) : undefined
  const { type, mode } = target ?? entry
  return {
    ...{ name: entry.name, path: entry.path, type: types[type] ?? "FILE_TYPE_UNSPECIFIED" },
    size: String((target ?? entry).size),
    mode: mode & 0o777,
    permissions: permissionsOf(type, mode),
    owner: people.users.get(entry.uid) ?? String(entry.uid),
    group: people.groups.get(entry.gid) ?? String(entry.gid),
    modifiedTime: new Date(entry.mtimeMs).toISOString(),
    ...(entry.type === "symlink" ? { symlinkTarget: targetOf(entry) } : {}),
    ...(entry.metadata === undefined ? {} : { metadata: entry.metadata }),
  }
}

async function leadsTo({ plane, session }: Inside, { path }: FileEntry): Promise<FileEntry | undefined> {
  return plane.call("file.stat", { session, path, user: "root" }).catch(() => undefined)
}

function targetOf({ path, target = "" }: FileEntry): string {
  if (target.startsWith("/")) return target
  return new URL(encodeURI(target), `file://${encodeURI(path)}`).pathname.split("/").map(decodeURIComponent).join("/")
}

/** `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`. */
function permissionsOf(type: FileEntry["type"], mode: number): string {
  const kind = letters[type] + special.map(([bit, letter]) => (mode & bit ? letter : "")).join("")
  const bits = Array.from({ length: 9 }, (_, at) => (mode & (0o400 >> at) ? "rwx"[at % 3] : "-")).join("")
  return (kind || "-") + bits
}
