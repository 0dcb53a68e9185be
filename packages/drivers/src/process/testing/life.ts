import { writeSync } from "node:fs"
import { silentLog } from "@warren/base/log.ts"
import { exec } from "../../init/exec.ts"
import { defaultLimits } from "../../sandbox-spec.ts"
import { specOf } from "../../spec-of.ts"
import { machineImage, openProcessDriver, type ProcessOptions } from "../driver.ts"

/** A runner that makes and unmakes sandboxes until it is killed: `life ROOT PROGRAMS`. What it said has happened. */
const [root = "", programs = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const driver = await openProcessDriver({
  root,
  programs: JSON.parse(programs) as ProcessOptions["programs"],
  isUnlimitedAllowed: true,
  log: silentLog,
})

function say(step: string, id: string): void {
  writeSync(1, `${step} ${id}\n`)
}

async function live(keepsEvery: number): Promise<void> {
  for (let round = 0; ; round++) {
    const spec = specOf(machineImage, { limits: { ...defaultLimits, diskBytes: 0 } })
    await driver.create(spec, never)
    say("created", spec.id)
    const sandbox = await driver.start(spec.id, never)
    say("started", spec.id)
    // Left running by every way out of the tree.
    await exec(sandbox, { argv: ["sh", "-c", `echo ${spec.id} > id; setsid sleep 7000 & (sleep 7001 &)`] })
    say("wrote", spec.id)
    if (round % keepsEvery === 0) continue
    say("destroying", spec.id)
    await driver.destroy(spec.id)
    say("destroyed", spec.id)
  }
}

say("ready", "-")
await Promise.all([2, 3].map(live))
