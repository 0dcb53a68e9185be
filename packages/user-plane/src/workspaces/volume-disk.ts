import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { openGround } from "@warren/drivers/oci/ground.ts"
import { Launcher } from "@warren/drivers/oci/launcher.ts"
import { ownIds } from "@warren/drivers/oci/owners.ts"
import { openVolume } from "@warren/drivers/oci/volume.ts"
import type { Disk } from "./disk.ts"

interface VolumeDiskOptions {
  /** Below the driver's own: its launcher lets go of every other volume, so that those can end while it runs. */
  readonly root: string
  /** The launcher's program. */
  readonly launch: string
  readonly log: Log
}

export interface VolumeDisk extends Disk, AsyncDisposable {
  /** Where workspaces go. */
  readonly folder: string
}

/**
 * A volume for workspaces alone: subvolumes with limits where there can be some, otherwise plain folders whose files can be removed
 * whoever inside wrote them. To be opened before a driver: what is mounted later, its launcher does not see.
 */
export async function openVolumeDisk({ root, launch, log }: VolumeDiskOptions): Promise<VolumeDisk> {
  await using scope = new Scope()
  await mkdir(root, { recursive: true, mode: 0o700 })
  const ground = scope.use(await openGround(root, { log }))
  const launcher = scope.use(new Launcher(launch, [root], log, ownIds()))
  const volume = await openVolume(ground, launcher)
  const owner = scope.move()
  return {
    folder: join(ground.folder, "named"),
    unlimited: volume.unlimited,
    create: (path, bytesMax) => volume.create(path, bytesMax),
    usage: (path) => volume.usage(path),
    remove: (path) => volume.remove(path),
    [Symbol.asyncDispose]: () => owner.close(),
  }
}
