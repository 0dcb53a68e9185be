import { execFile } from "node:child_process"
import { mkdir, open } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { promisify } from "node:util"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Disk } from "@warren/drivers/driver.ts"
import { emptyFolder, removeTree } from "./remove-tree.ts"

const run = promisify(execFile)
const measureMs = 60_000

/** Plain folders in a folder. */
export function plainDisk(folder: string): Disk {
  return { folder, ...plainFolders }
}

const plainFolders: Omit<Disk, "folder"> = {
  unlimited: "plain folders have no limit of their own",

  async create(path) {
    await mkdir(path, { mode: 0o700 })
  },

  /** `du` neither follows links nor minds how deep it gets. What vanishes meanwhile makes it complain, not fail to count. */
  async usage(path) {
    const options = { timeout: measureMs, env: { LC_ALL: "C" } }
    const { stdout } = await run("/usr/bin/du", ["-s", "-x", "-B1", "--", path], options).catch((failure: unknown) => {
      if (failure instanceof Error && "stdout" in failure) return { stdout: String(failure.stdout) }
      throw failure
    })
    const bytes = Number.parseInt(stdout, 10)
    if (Number.isNaN(bytes)) throw new Fault("unavailable", "the workspace cannot be measured")
    return bytes
  },

  async remove(path) {
    // Within itself first: what is laid aside next to it would be nobody's if we died then.
    await emptyFolder(path).catch((failure: unknown) => {
      if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(failure))) throw failure
    })
    const above = await open(dirname(path)).catch((failure: unknown) => {
      if (errnoOf(failure) !== "ENOENT") throw failure
      return undefined
    })
    try {
      if (above) await removeTree(above, basename(path))
    } finally {
      await above?.close()
    }
  },
}
