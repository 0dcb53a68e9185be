import { join } from "node:path"
import { canLendLayers, type Driver } from "@warren/drivers/driver.ts"
import { defaultLimits, type Limits } from "@warren/drivers/sandbox-spec.ts"

/** What whoever runs the tests can have: an ordinary user no limit of the disk, and none of memory unless groups were delegated. */
export const possibleLimits: Limits =
  process.getuid?.() === 0 ? defaultLimits : { ...defaultLimits, diskBytes: 0, mayBeUnlimited: true }

/** Where images of a driver in `root` are kept. */
export function imagesRoot(driver: Driver, root: string): string {
  return (canLendLayers(driver) ? driver.imagesFolder : undefined) ?? join(root, "images")
}

/** The keeper's program, to be bundled: of the sources as they are now. */
export const keeperSource = new URL("../keeper/program.ts", import.meta.url)
