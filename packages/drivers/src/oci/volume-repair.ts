import { mkdirSync, rmdirSync, statSync } from "node:fs"
import { rename, truncate } from "node:fs/promises"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { forgetLog, keepSuperblock, restoreSuperblock, sizeIn } from "./superblock.ts"
interface Hands {
  /** `more`: further options. Of the volume itself, unless told. */
  mount(more?: string, file?: string, folder?: string): Promise<unknown>
  unmount(folder: string): Promise<void>
  makeNew(file: string): Promise<void>
  /** What the first mount said. */
  readonly why: string
}

interface Remedy {
  /** What was done, for whoever reads it afterwards. */
  readonly words: string
  /** False: there is nothing of that kind to be done. */
  apply(file: string): boolean | Promise<boolean>
  readonly options?: string
}

/** The gentlest first. None of them takes anything away but what the last seconds before the damage had written. */
const remedies: readonly Remedy[] = [
  { words: "its superblock was restored from a copy", apply: restoreSuperblock },
  {
    words: "its file had become shorter and was made as long as it was; what was in that part is gone",
    apply: lengthen,
  },
  { words: "an older root of it was used", apply: () => true, options: ",rescue=usebackuproot" },
  { words: "what was written in its last seconds was left out", apply: forgetLog },
]

/** Mounts a damaged volume, or sets it aside and mounts a new one. Says what was done. Nothing is ever deleted. */
export async function repair(file: string, hands: Hands): Promise<string> {
  const done: string[] = []
  const putBack = keepSuperblock(file)
  for (const { words, apply, options } of remedies) {
    if (!(await apply(file))) continue
    try {
      await hands.mount(options)
      return `the volume was damaged and has been repaired: ${[...done, words].join("; ")}`
    } catch {
      // Then the next one. What is only an option has changed nothing.
      if (options === undefined) done.push(words)
    }
  }
  // What did not help was not done: whoever looks into it later finds it as it broke.
  putBack()
  return await replace(file, hands)
}

/** Only if a new one can be mounted: where none can, it is not the old one that is broken. */
async function replace(file: string, hands: Hands): Promise<string> {
  const fresh = `${file}.new`
  const trial = `${file}.trial`
  // Whoever was here before may have been killed on the way.
  await hands.unmount(trial).catch(() => undefined)
  try {
    await hands.makeNew(fresh)
    mkdirSync(trial, { recursive: true, mode: 0o700 })
    await hands.mount("", fresh, trial)
    await hands.unmount(trial)
    rmdirSync(trial)
  } catch (cause) {
    throw new Fault("unavailable", `${hands.why.trim()}; nor can a new one: ${messageOf(cause).trim()}`, { cause })
  }
  const aside = `${file}.broken-${new Date().toISOString().replaceAll(":", "-")}`
  await rename(file, aside)
  await rename(fresh, file)
  await hands.mount()
  return "the volume was damaged beyond repair: sandboxes, snapshots and images begin anew"
}

/** As long as the superblock says it is. */
async function lengthen(file: string): Promise<boolean> {
  const bytes = sizeIn(file)
  if (bytes === undefined || statSync(file).size >= bytes) return false
  await truncate(file, bytes)
  return true
}
