import { canLendLayers, type Driver } from "@warren/drivers/driver.ts"
import type { Keeper } from "./keeper.ts"
import { KeeperProcesses } from "./process.ts"

/** Who keeps the layers of a driver's sandboxes; undefined where nobody else is needed. `program`: `program.ts`, as one file. */
export function keeperFor(driver: Driver, program: string): Keeper | undefined {
  const asKeeper = canLendLayers(driver) ? driver.asKeeper : undefined
  return asKeeper && new KeeperProcesses((job) => asKeeper([process.execPath, program, job]))
}
