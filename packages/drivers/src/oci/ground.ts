import { mkdirSync, readdirSync, statfsSync } from "node:fs"
import { join } from "node:path"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import { isMounted, VolumeFile } from "./volume-file.ts"

/** A folder that is on a btrfs, or why it is not. */
export interface Ground extends AsyncDisposable {
  readonly folder: string
  readonly missing: string | undefined
  /** What is wrong with it, or was and had to be repaired, in plain words. */
  readonly notes: readonly string[]
  /** To be called before something is made on it: grows it if that is needed and possible. `limit` when it is full. */
  makeRoom(): Promise<void>
}

export interface GroundOptions {
  readonly log: Log
  /** Plain folders, also where something better can be had. */
  readonly isPlain?: boolean | undefined
  /** How large a volume of ours is at first. */
  readonly firstBytes?: number | undefined
}

const btrfsType = 0x91_23_68_3e
/** With less than this nothing new is begun: what runs needs the rest. */
const leastFreeBytes = 32 * 1024 * 1024

/**
 * The ground below `root`: the disk itself where it is a btrfs, otherwise a btrfs in a file of ours. That gives real disk
 * limits, snapshots that cost nothing and removal in an instant. To be had before the launcher starts: its mount namespace is
 * a copy of what there is then.
 */
export async function openGround(root: string, options: GroundOptions): Promise<Ground> {
  const folder = join(root, "volume")
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const missing = whyPlain(folder, options)
  if (missing !== undefined) return plainGround(folder, missing)
  if (statfsSync(root).type === btrfsType) return plainGround(folder, undefined)
  const file = new VolumeFile(join(root, "volume.btrfs"), folder, options)
  try {
    await file.open()
  } catch (failure) {
    // What is in it would be missing without a word.
    if (file.exists) throw new Fault("unavailable", `the volume of the sandboxes cannot be mounted: ${words(failure)}`)
    return plainGround(folder, words(failure))
  }
  return {
    folder,
    missing: undefined,
    notes: file.notes,
    makeRoom: async () => {
      await file.growIfNeeded()
      refuseIfFull(folder)
    },
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

function whyPlain(folder: string, { isPlain }: GroundOptions): string | undefined {
  if (process.getuid?.() !== 0) return "only root can mount a volume or limit what is written"
  if (isPlain) return "plain folders were asked for"
  const isTaken = !isMounted(folder) && statfsSync(folder).type !== btrfsType && readdirSync(folder).some(isOurs)
  return isTaken ? "there are sandboxes here that were made without a volume" : undefined
}

function isOurs(name: string): boolean {
  return isId("sbx", name) || isId("snp", name)
}

/** Nothing was mounted, so nothing is taken away. */
function plainGround(folder: string, missing: string | undefined): Ground {
  return {
    folder,
    missing,
    notes: [],
    makeRoom: () => Promise.resolve().then(() => refuseIfFull(folder)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

function refuseIfFull(folder: string): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize >= leastFreeBytes) return
  throw new Fault("limit", `there is no room left in ${folder}`, {
    hint: "remove sandboxes, snapshots or images, or make room on the disk",
  })
}

function words(failure: unknown): string {
  return messageOf(failure).trim().split("\n").slice(0, 2).join(" ")
}
