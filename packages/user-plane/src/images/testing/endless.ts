import { silentLog } from "@warren/base/log.ts"
import { openOciDriver, type OciOptions } from "@warren/drivers/oci/driver.ts"
import { Images } from "../images.ts"
import { keeperFor } from "../keeper/open.ts"
import { endlessTar } from "./archives.ts"

/** A process to be killed: `endless ROOT PROGRAMS KEEPER IMAGES` makes a layer that never ends. */
const [root = "", programs = "{}", keeper = "", imagesRoot = ""] = process.argv.slice(2)
await using driver = await openOciDriver({
  root,
  programs: JSON.parse(programs) as OciOptions["programs"],
  log: silentLog,
})
await using images = await Images.open({ root: imagesRoot, log: silentLog, keeper: keeperFor(driver, keeper) })
await images.store.add(endlessTar(), { pin: () => undefined })
