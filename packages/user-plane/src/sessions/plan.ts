import type { DriverName } from "@warren/drivers/driver.ts"
import type { Limits, Network, Profile, SnapshotId } from "@warren/drivers/sandbox-spec.ts"

/** Everything a sandbox is made from. Two sessions with the same plan can have each other's sandbox before anybody has used it. */
export interface Plan {
  readonly driver: DriverName
  /** What the name of the image stood for when the plan was made. */
  readonly image: string
  readonly profile: Profile
  readonly limits: Limits
  readonly network: Network["mode"]
  readonly workspace?: string | undefined
  readonly from?: SnapshotId | undefined
}

/** The same text for the same plan. */
export function keyOf({ driver, image, profile, limits, network, workspace, from }: Plan): string {
  const { cpus, memoryBytes, pidsMax, openFilesMax, diskBytes, mayBeUnlimited = false } = limits
  const numbers = [cpus, memoryBytes, pidsMax, openFilesMax, diskBytes, mayBeUnlimited]
  return JSON.stringify([driver, image, profile, network, workspace ?? "", from ?? "", ...numbers])
}
