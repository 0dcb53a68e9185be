import { chmodSync, chownSync, lstatSync, lutimesSync, readdirSync, rmSync, type Stats } from "node:fs"
import { readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { finish, newHash, type Digest } from "../digest.ts"
import type { ArchiveLimits } from "../limits.ts"
import { tooMuch } from "../tar/entry.ts"
import type { WritableEntry } from "../tar/writer.ts"
import { FolderWalk } from "./folder-walk.ts"
import { isOurs, packUpper } from "./pack.ts"
import { markerOf, placeOf, type Place } from "./place.ts"

interface Settled {
  readonly digest: Digest
  readonly entries: number
  readonly bytes: number
  readonly opaque: readonly string[]
}

interface SettleOptions {
  readonly limits: ArchiveLimits
  readonly signal?: AbortSignal | undefined
}

/** Entries after which others get their turn. */
const entriesPerTurn = 1_000

/**
 * Makes a writable layer, which nobody writes to any more, what its archive would be when extracted; the digest is that of the
 * archive, which is read once and written nowhere.
 */
export async function settle(root: string, { limits, signal }: SettleOptions): Promise<Settled> {
  await scrub(root, signal)
  const hash = newHash()
  const opaque: string[] = []
  let entries = 0
  let bytes = 0
  const seen = (entry: WritableEntry): void => {
    if (++entries > limits.entriesMax) throw tooMuch(entry.name, `is one of more than ${limits.entriesMax}`)
    bytes += entry.sizeBytes ?? 0
    const marker = markerOf(entry.name, placeOf(entry.name, entry.name, limits))
    if (marker?.kind === "opaque") opaque.push(marker.at.join("/"))
  }
  for await (const piece of packUpper(root, seen)) {
    signal?.throwIfAborted()
    hash.update(piece)
  }
  return { digest: finish(hash), entries, bytes, opaque }
}

/** Everything in a folder goes, but for what leads to one place in it. */
export async function removeAround(folder: string, [name, ...rest]: readonly string[]): Promise<void> {
  if (name === undefined) return
  for (const other of await readdir(folder)) {
    if (other !== name) await rm(join(folder, other), { recursive: true, force: true })
  }
  await removeAround(join(folder, name), rest)
}

async function scrub(root: string, signal: AbortSignal | undefined): Promise<void> {
  using walk = new FolderWalk(root)
  let count = 0
  for (const place of below(walk, [])) {
    scrubOne(walk, place)
    if (++count % entriesPerTurn > 0) continue
    signal?.throwIfAborted()
    await new Promise(setImmediate)
  }
  chownSync(root, 0, 0)
  chmodSync(root, 0o755)
  lutimesSync(root, 0, 0)
}

/** A folder comes before what is in it. */
function* below(walk: FolderWalk, place: Place): Generator<Place, void, void> {
  const path = walk.find([...place, "."])
  for (const name of path ? readdirSync(path, { encoding: "latin1" }) : []) {
    const inner = [...place, name]
    yield inner
    if (walk.stat(inner)?.isDirectory()) yield* below(walk, inner)
  }
}

/** Away with what no layer has: sockets, pipes and devices, and what gives a program other rights than its caller's. */
function scrubOne(walk: FolderWalk, place: Place): void {
  const path = walk.find(place)
  const stats = path && lstatSync(path, { throwIfNoEntry: false })
  if (!path || !stats) return
  if (stats.isFile()) {
    // The kernel takes capabilities from a file that changes its owner, also to the same one.
    if ((stats.mode & 0o6111) !== 0) chownSync(path, stats.uid, stats.gid)
    if ((stats.mode & 0o6000) !== 0) chmodSync(path, stats.mode & 0o1777)
  } else if (isOurs(place.join("/")) || !(stats.isDirectory() || stats.isSymbolicLink() || isWhiteout(stats))) {
    takeAway(walk, place)
  }
}

/** The folder it was in looks as if it had never been there. */
function takeAway(walk: FolderWalk, place: Place): void {
  walk.forget()
  const path = walk.find(place)
  const folder = walk.find([...place.slice(0, -1), "."])
  if (!path || !folder) return
  const { atimeMs, mtimeMs } = lstatSync(folder)
  rmSync(path, { recursive: true, force: true })
  lutimesSync(folder, atimeMs / 1000, mtimeMs / 1000)
}

function isWhiteout(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0
}
