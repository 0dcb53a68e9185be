import type { Driver } from "@warren/drivers/driver.ts"
import { defaultLimits, type Limits } from "@warren/drivers/sandbox-spec.ts"

/** Of a sandbox in which an image is made. Where no disk can be limited, as for an ordinary user, images are made all the same. */
export function workerLimits({ abilities }: Driver, wanted: Limits = defaultLimits): Limits {
  return abilities.diskLimit ? wanted : { ...wanted, diskBytes: 0 }
}
