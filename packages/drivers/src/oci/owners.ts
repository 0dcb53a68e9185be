import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync, type Stats } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Image, SandboxSpec } from "../sandbox-spec.ts"
import { folders, type Folder } from "./host-image.ts"
import { IdRanges, rangeSize } from "./id-ranges.ts"
import type { Launcher } from "./launcher.ts"
import { layers, needsWorkspace } from "./start-request.ts"
import type { Places } from "./store.ts"
import type { Command } from "../driver.ts"
import { subordinateIds, type SubordinateIds } from "./subordinate-ids.ts"
import { hostLimits, shareOf, userLimits, type UserLimits } from "./user-limits.ts"

/** Which ids of this machine a sandbox's are, and how its files come to have them. */
export interface Owners {
  readonly ranges: IdRanges
  /** Whether the kernel maps the owners of files as it mounts them: then all is on disk as it is inside. */
  readonly isMapped: boolean
  /** The first id of a range as the launcher counts: without root it lives in a user namespace of its own. */
  launcherId(idBase: number): number
  /** The first gid of a range whose first uid this is. */
  gidBase(idBase: number): number
  /** A range for a sandbox of this image: one of its own, unless the image's files belong to one already. */
  take(image: Image): number
  /** Whether files of the image are inside whose they should be, without being mapped. */
  fits(image: Image, idBase: number): boolean
  /** Of a sandbox's own user namespace. */
  readonly userLimits: UserLimits
  /** Runs a program for which owners of files are those inside of sandboxes, with every right over them. Absent where any program of ours has that. */
  readonly asKeeper?: (argv: readonly string[]) => Command
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
  readonly userLimits = userLimits

  launcherId(idBase: number): number {
    return idBase
  }

  gidBase(idBase: number): number {
    return idBase
  }

  take(): number {
    return this.ranges.take()
  }

  fits(): boolean {
    return false
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
  readonly userLimits = shareOf(userLimits, hostLimits())
  readonly #ids: SubordinateIds
  readonly #launcher: Launcher

  constructor(ids: SubordinateIds, launcher: Launcher) {
    this.#ids = ids
    this.#launcher = launcher
    const slots = Math.floor(ids.count / rangeSize)
    // The first is that of images, and of nobody else where there are others.
    const first = slots > 1 ? ids.uid + rangeSize : ids.uid
    this.ranges = new IdRanges({ first, slots: Math.max(slots - 1, 1), isShared: true })
  }

  /** In there 0 is the user, and their subordinate ids begin at 1. */
  launcherId(idBase: number): number {
    return idBase - this.#ids.uid + 1
  }

  gidBase(idBase: number): number {
    return idBase - this.#ids.uid + this.#ids.gid
  }

  /** All sandboxes of images have the same range: owners on disk are right for one only. */
  take(image: Image): number {
    const base = this.#rangeOf(image)
    if (base === undefined) return this.ranges.take()
    this.ranges.keep(base)
    return base
  }

  fits(image: Image, idBase: number): boolean {
    return this.#rangeOf(image) === idBase
  }

  readonly asKeeper = (argv: readonly string[]): Command => [
    this.#launcher.program,
    ...["--inside", `${this.#ids.uid}:${this.#ids.gid}:${rangeSize}`],
    ...argv,
  ]

  async fill(places: Places, spec: SandboxSpec, idBase: number): Promise<void> {
    const missing = this.fits(spec.image, idBase) ? [] : skeleton(places, spec)
    const all = [...ownFolders(places, spec), ...missing]
    await this.#launcher.makeFolders(places.folder, this.launcherId(idBase), all)
  }

  /** Whose files an image's are, when all of them are of one range: what is on the disk says so. */
  #rangeOf({ layers, grafts = [] }: Image): number | undefined {
    const bases = new Set(layers.map((path) => this.#baseOf(ownerOf(path))))
    const [base] = bases
    return grafts.length === 0 && bases.size === 1 ? base : undefined
  }

  #baseOf(uid: number | undefined): number | undefined {
    const slot = uid === undefined ? -1 : Math.floor((uid - this.#ids.uid) / rangeSize)
    const isOurs = slot >= 0 && slot < Math.floor(this.#ids.count / rangeSize)
    return isOurs ? this.#ids.uid + slot * rangeSize : undefined
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

function ownerOf(path: string): number | undefined {
  return lookAt(path)?.uid
}

function isSymbolicLink(path: string): boolean {
  return lookAt(path)?.isSymbolicLink() ?? false
}

/** Below a layer that is no folder there is nothing; that it is none is said by whoever mounts it. */
function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (failure) {
    if (errnoOf(failure) === "ENOTDIR") return undefined
    throw failure
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
