import { join } from "node:path"
import type { Log } from "@warren/base/log.ts"
import type { Scope } from "@warren/base/scope.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { openProcessDriver } from "@warren/drivers/process/driver.ts"

interface DriverSettings {
  readonly driver: "oci" | "process"
  readonly programs: string
  readonly cgroupParent: string
}

/** The driver sessions get. It is opened here and nowhere else; what it lacks on this machine it says itself. */
export async function openDriver(root: string, settings: DriverSettings, log: Log, scope: Scope): Promise<Driver> {
  const program = (name: string): string => join(settings.programs, name)
  const common = { root: join(root, "sandboxes", settings.driver), log }
  if (settings.driver === "process") {
    const programs = { init: program("warren-init"), confine: program("warren-confine") }
    return scope.use(await openProcessDriver({ ...common, programs, isUnlimitedAllowed: true }))
  }
  const programs = {
    init: program("warren-init"),
    launch: program("warren-launch"),
    libraries: program("crun-lib"),
  }
  const cgroupParent = settings.cgroupParent === "" ? undefined : settings.cgroupParent
  return scope.use(await openOciDriver({ ...common, programs, cgroupParent }))
}
