import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { SandboxSpec } from "../sandbox-spec.ts"
import { folders, type Folder } from "./host-image.ts"
import { IdRanges, rangeSize } from "./id-ranges.ts"
import type { Launcher } from "./launcher.ts"
import { layers, needsWorkspace } from "./start-request.ts"
import type { Places } from "./store.ts"
import { subordinateIds, type SubordinateIds } from "./subordinate-ids.ts"

/** Which ids of this machine a sandbox's are, and how its files come to have them. */
export interface Owners {
  readonly ranges: IdRanges
  /** Whether the kernel maps the owners of files as it mounts them: then all is on disk as it is inside. */
  readonly isMapped: boolean
  /** The first id of a range as the launcher counts: without root it lives in a user namespace of its own. */
  launcherId(idBase: number): number
  /** The first gid of a range whose first uid this is. */
  gidBase(idBase: number): number
  /** Makes the folders that a sandbox writes to. */
  fill(places: Places, spec: SandboxSpec, idBase: number): Promise<void>
}

/** The user that commands run as, inside. */
const userId = 1000

/** What this user's sandboxes may be: nothing to look up for root. */
export function ownIds(): SubordinateIds | undefined {
  if (process.getuid?.() === 0) return undefined
  const { username, uid } = userInfo()
  const ids = subordinateIds(read("/etc/subuid"), read("/etc/subgid"), { name: username, uid })
  if (ids && ids.count >= rangeSize) return ids
  throw new Fault("unavailable", `${username} has no ${rangeSize} subordinate ids, and a sandbox needs that many`, {
    hint: `sudo usermod --add-subuids 1000000-1655359 --add-subgids 1000000-1655359 ${username}`,
  })
}

/** `ids`: those of an ordinary user; root has none. */
export function openOwners(ids: SubordinateIds | undefined, launcher: Launcher): Owners {
  return ids ? new UserOwners(ids, launcher) : new RootOwners()
}

class RootOwners implements Owners {
  readonly ranges = new IdRanges()
  readonly isMapped = true

  launcherId(idBase: number): number {
    return idBase
  }

  gidBase(idBase: number): number {
    return idBase
  }

  /** Directly: a start waits for it, and Node can do it all. */
  fill(places: Places, spec: SandboxSpec): Promise<void> {
    for (const { path, mode, owner } of ownFolders(places, spec)) {
      // A sandbox that begins with a snapshot has most of them, as whoever was in there left them.
      if (existsSync(join(places.folder, path))) continue
      mkdirSync(join(places.folder, path), { mode })
      if (owner !== 0) chownSync(join(places.folder, path), owner, owner)
    }
    return Promise.resolve()
  }
}

class UserOwners implements Owners {
  readonly ranges: IdRanges
  readonly isMapped = false
  readonly #ids: SubordinateIds
  readonly #launcher: Launcher

  constructor(ids: SubordinateIds, launcher: Launcher) {
    this.#ids = ids
    this.#launcher = launcher
    this.ranges = new IdRanges({ first: ids.uid, slots: Math.floor(ids.count / rangeSize), isShared: true })
  }

  /** In there 0 is the user, and their subordinate ids begin at 1. */
  launcherId(idBase: number): number {
    return idBase - this.#ids.uid + 1
  }

  gidBase(idBase: number): number {
    return idBase - this.#ids.uid + this.#ids.gid
  }

  async fill(places: Places, spec: SandboxSpec, idBase: number): Promise<void> {
    const all = [...ownFolders(places, spec), ...skeleton(places, spec)]
    await this.#launcher.makeFolders(places.folder, this.launcherId(idBase), all)
  }
}

/** Paths are below the sandbox's folder. */
function ownFolders(places: Places, spec: SandboxSpec): Folder[] {
  const at = (path: string): string => path.slice(places.folder.length)
  return [
    { path: at(places.data), mode: 0o700, owner: 0 },
    ...layers(spec, places).flatMap(({ upper, work }) => [
      { path: at(upper), mode: 0o755, owner: 0 },
      { path: at(work), mode: 0o700, owner: 0 },
    ]),
    ...(needsWorkspace(spec) ? [{ path: at(places.workspace), mode: 0o755, owner: userId }] : []),
  ]
}

/**
 * Where owners are not mapped, everything of the image looks as if it were nobody's. A folder that is in the writable layer,
 * too, has the owner it has there: so these can be written in, though what the image has in them cannot be changed.
 */
function skeleton(places: Places, spec: SandboxSpec): Folder[] {
  const uppers = layers(spec, places).toSorted((a, b) => b.to.length - a.to.length)
  const sources = [...spec.image.layers.map((from) => ({ from, to: "/" })), ...(spec.image.grafts ?? [])]
  return [...folders, ...localFolders].flatMap(({ path, mode, owner }) => {
    const inside = `/${path}`
    const isLink = sources.some(({ from, to }) => isWithin(inside, to) && isSymbolicLink(join(from, rest(inside, to))))
    const layer = uppers.find(({ to }) => inside !== to && isWithin(inside, to))
    if (isLink || !layer) return []
    return [{ path: join(layer.upper.slice(places.folder.length), rest(inside, layer.to)), mode, owner }]
  })
}

const localFolders: readonly Folder[] = ["", "/bin", "/etc", "/include", "/lib", "/sbin", "/share", "/src"].map(
  (below) => ({
    path: `usr/local${below}`,
    mode: 0o755,
    owner: 0,
  }),
)

function isWithin(inner: string, outer: string): boolean {
  return outer === "/" || inner === outer || inner.startsWith(`${outer}/`)
}

function rest(inner: string, outer: string): string {
  return outer === "/" ? inner : inner.slice(outer.length)
}

function isSymbolicLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
