import { execFile } from "node:child_process"
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Fault } from "@warren/base/fault.ts"
import type { Places } from "../oci/store.ts"
import { openedBy } from "./reach.ts"
import { View } from "./view.ts"

const run = promisify(execFile)

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** A file that everybody may read, but for Landlock. */
export function canaryOf({ folder }: Pick<Places, "folder">): string {
  return join(folder, "canary")
}

/** The folders and files of a new sandbox: passed through by its user, written to by it in three places. */
export function fillFolder(places: Places, owner: Owner): void {
  for (const path of [places.folder, places.data]) {
    mkdirSync(path, { recursive: true })
    // Said twice: the umask has a word in what mkdir does.
    chmodSync(path, 0o711)
  }
  for (const path of new View(places).folders) {
    mkdirSync(path, { mode: 0o700 })
    chownSync(path, owner.uid, owner.gid)
  }
  writeFileSync(canaryOf(places), "only Landlock stands before this\n")
  chmodSync(canaryOf(places), 0o644)
}

/** Takes a sandbox's folder away, whatever is in it: rm walks by descriptors and never through a link or into a mount. */
export async function removeFolder(folder: string): Promise<void> {
  const remove = (): Promise<unknown> => run("rm", ["-rf", "--one-file-system", "--", folder])
  try {
    await remove()
  } catch {
    // Folders without permissions, made by a sandbox that has our own uid.
    await run("chmod", ["-R", "u+rwx", "--", folder])
    await remove()
  }
}

/** Refuses a root that its sandboxes could not reach, or could reach too well. */
export function checkRoot(root: string, isPerson: boolean): void {
  const opened = openedBy(root)
  if (opened !== undefined) {
    throw new Fault("invalid", `sandboxes cannot be kept in ${root}: every one of them may read ${opened}`)
  }
  if (isPerson) return
  for (let folder = root; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) {
      throw new Fault("unavailable", `the sandboxes' users cannot pass through ${folder}`, {
        hint: `chmod o+x ${folder}, or keep Warren's data where everybody may pass, such as /var/lib/warren`,
      })
    }
    if (folder === dirname(folder)) return
  }
}
