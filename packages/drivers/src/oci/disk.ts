import { join } from "node:path"
import type { Disk } from "../driver.ts"
import type { Volume } from "./volume.ts"

/** Folders that outlive sandboxes, beside them on the same volume. */
export function diskOf(volume: Volume): Disk {
  return {
    folder: join(volume.folder, "folders"),
    unlimited: volume.unlimited,
    create: (path, bytesMax) => volume.create(path, bytesMax),
    usage: (path) => volume.usage(path),
    remove: (path) => volume.remove(path),
  }
}

/** Whether a folder is one of those: its keeper sees to it that sandboxes can write there, whoever they are on this machine. */
export function isOnDisk(volume: Volume, path: string): boolean {
  return path.startsWith(`${diskOf(volume).folder}/`)
}
