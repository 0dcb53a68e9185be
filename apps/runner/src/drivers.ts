import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Log } from "@warren/base/log.ts"
import type { Scope } from "@warren/base/scope.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { openProcessDriver } from "@warren/drivers/process/driver.ts"
import { sandboxesOf } from "@warren/protocol/places.ts"

interface DriverSettings {
  readonly driver: "oci" | "process"
  readonly programs: string
  readonly cgroupParent: string
}

/** The driver sessions get. It is opened here and nowhere else; what it lacks on this machine it says itself. */
export async function openDriver(root: string, settings: DriverSettings, log: Log, scope: Scope): Promise<Driver> {
  const program = (name: string): string => join(settings.programs, name)
  const common = { root: sandboxesOf(root, settings.driver), log }
  if (settings.driver === "process") {
    const programs = { init: program("warren-init"), confine: program("warren-confine") }
    const place = processRoot(common.root)
    scope.defer(() => removeIfEmpty(place))
    return scope.use(await openProcessDriver({ ...common, root: place, programs, isUnlimitedAllowed: true }))
  }
  const programs = {
    init: program("warren-init"),
    launch: program("warren-launch"),
    libraries: program("crun-lib"),
  }
  const cgroupParent = settings.cgroupParent === "" ? undefined : settings.cgroupParent
  return scope.use(await openOciDriver({ ...common, programs, cgroupParent }))
}

/**
 * Root's sandboxes of this driver have users of their own, who must get to their folders; the owner's are closed to everybody. So theirs
 * are elsewhere: one place for each data folder, gone with the machine's next start.
 */
function processRoot(root: string): string {
  if (process.getuid?.() !== 0) return root
  const place = join("/run/warren-process", createHash("sha256").update(root).digest("hex").slice(0, 16))
  mkdirSync(place, { recursive: true, mode: 0o711 })
  return place
}

function removeIfEmpty(place: string): void {
  const left = readdirSync(place).filter((name) => name !== "lock")
  if (left.length === 0) rmSync(place, { recursive: true, force: true })
}
