import { writeSync } from "node:fs"
import { join } from "node:path"
import { createLog } from "@warren/base/log.ts"
import { messageOf } from "@warren/base/fault.ts"
import { exec } from "../../init/exec.ts"
import { defaultLimits } from "../../sandbox-spec.ts"
import { specOf } from "../../spec-of.ts"
import { openOciDriver, type OciOptions } from "../driver.ts"
import { hostImage } from "../host-image.ts"

/**
 * A runner that does nothing but make and unmake sandboxes until it is killed: `life ROOT PROGRAMS`. Each step is said before
 * (`starting`) and after (`started`); what was said after has happened.
 */
const [root = "", programs = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const driver = await openOciDriver({
  root,
  programs: JSON.parse(programs) as OciOptions["programs"],
  log: createLog((line) => process.stderr.write(line)),
})
const image = await hostImage(join(root, "host-image"))

const limits = { ...defaultLimits, ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }) }

function say(step: string, id: string): void {
  writeSync(1, `${step} ${id}\n`)
}

/** Long enough that some are killed here, too. */
const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5))

async function live(keepsEvery: number): Promise<void> {
  for (let round = 0; ; round++) {
    const spec = specOf(image, { limits })
    const { id } = spec
    say("creating", id)
    await driver.create(spec, never)
    say("created", id)
    await moment()
    for (let start = 0; start < 2; start++) {
      say("starting", id)
      const sandbox = await driver.start(id, never)
      say("started", id)
      const result = await exec(sandbox, { argv: ["sh", "-c", `echo ${id} > /workspace/id`] })
      if (result.code !== 0) throw new Error(`the command ended with ${result.code}`)
      say("wrote", id)
      if (round % keepsEvery === 0) break
      say("stopping", id)
      await driver.stop(id, 20)
      say("stopped", id)
      await moment()
    }
    if (round % keepsEvery === 0) continue
    say("destroying", id)
    await driver.destroy(id)
    say("destroyed", id)
  }
}

say("ready", "-")
// When its launcher is killed first, everything fails; then it waits for its own end.
const ends = [2, 3, 5].map((keepsEvery) =>
  live(keepsEvery).catch((failure: unknown) => say("failed", messageOf(failure))),
)
await Promise.all(ends)
setInterval(() => undefined, 1_000)
