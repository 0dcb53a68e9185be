import { writeSync } from "node:fs"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { openOciDriver, type OciOptions } from "@warren/drivers/oci/driver.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { Images } from "../images.ts"
import { keeperFor } from "../keeper/open.ts"
import { build } from "../recipe/build.ts"
import { imagesRoot, possibleLimits } from "./keeper.ts"

/**
 * A process to be killed: `builder ROOT PROGRAMS ARCHIVE KEEPER` imports, builds, commits and collects without end, and says a line
 * before everything it does. A sandbox it says it has `kept` is one that somebody needs.
 */
const [root = "", programs = "{}", archive = "", keeper = ""] = process.argv.slice(2)
const never = new AbortController().signal
const driver = await openOciDriver({ root, programs: JSON.parse(programs) as OciOptions["programs"], log: silentLog })
const images = await Images.open({ root: imagesRoot(driver, root), log: silentLog, keeper: keeperFor(driver, keeper) })
const sandbox = { limits: possibleLimits }
const say = (line: string): void => void writeSync(1, `${line}\n`)

for (let round = 0; ; round++) {
  say("importing")
  await images.import(archive, { name: "base" })
  say("building")
  const recipe = `FROM base\nRUN echo ${round} ${process.pid} > /file; mkdir /folder; echo said\nRUN rm /file\nWORKDIR /new-${round}`
  const progress = ({ kind }: { kind: string }): void => say(kind)
  await build({ images, driver, recipe, context: "/", name: "built", progress, sandbox })
  const spec = specOf(await images.use("built", "nobody"), { id: newId("sbx"), ...sandbox })
  say("using")
  images.release("nobody")
  await images.use("built", spec.id)
  await driver.create(spec, never)
  await exec(await driver.start(spec.id, never), { argv: ["sh", "-c", "echo precious > /workspace/file"] })
  await driver.stop(spec.id)
  say(`kept ${spec.id}`)
  say("committing")
  await images.commit(driver, spec.id, `made:${round}`)
  say("committed")
  images.delete(`made:${round}`)
  say("collecting")
  await images.gc({ stepsMs: 0 })
}
