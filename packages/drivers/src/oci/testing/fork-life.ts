import { writeSync } from "node:fs"
import { join } from "node:path"
import { messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { createLog } from "@warren/base/log.ts"
import { exec } from "../../init/exec.ts"
import { defaultLimits, type SandboxId } from "../../sandbox-spec.ts"
import { specOf } from "../../spec-of.ts"
import { openOciDriver, type OciOptions } from "../driver.ts"
import { hostImage } from "../host-image.ts"

/**
 * A runner that does nothing but fork sandboxes until it is killed: `fork-life ROOT OPTIONS`. Each step is said before and after;
 * what was said after has happened.
 */
const [root = "", options = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const driver = await openOciDriver({
  root,
  ...(JSON.parse(options) as Pick<OciOptions, "programs" | "volume">),
  log: createLog((line) => process.stderr.write(line)),
})
const image = await hostImage(join(root, "host-image"))
const limits = { ...defaultLimits, ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }) }

function say(step: string, id: string): void {
  writeSync(1, `${step} ${id}\n`)
}

async function write(id: SandboxId): Promise<void> {
  const sandbox = await driver.start(id, never)
  const command = `test ! -e /workspace/id || cp /workspace/id /workspace/parent; echo ${id} > /workspace/id; seq 1 20000 > /workspace/many`
  const { code } = await exec(sandbox, { argv: ["sh", "-c", command] })
  if (code !== 0) throw new Error(`the command ended with ${code}`)
}

async function destroy(id: SandboxId): Promise<void> {
  say("destroying", id)
  await driver.destroy(id)
  say("destroyed", id)
}

async function fork(): Promise<void> {
  for (;;) {
    const parent = specOf(image, { limits })
    say("creating", parent.id)
    await driver.create(parent, never)
    await write(parent.id)
    say("wrote", parent.id)
    const from = newId("snp")
    say("freezing", from)
    await driver.snapshot(parent.id, from)
    say("frozen", from)
    const children = [1, 2].map(() => specOf(image, { limits, from }))
    for (const { id } of children) say("creating", id)
    await Promise.all(children.map((child) => driver.create(child, never)))
    for (const { id } of children) say("created", id)
    say("removing", from)
    await driver.removeSnapshot(from)
    say("removed", from)
    for (const { id } of children) {
      say("writing", id)
      await write(id)
      say("wrote", id)
    }
    for (const { id } of [parent, ...children]) await destroy(id)
  }
}

say("ready", "-")
// When its launcher is killed first, what it had begun fails; then it waits for its own end.
await Promise.all([1, 2].map(() => fork().catch((failure: unknown) => say("failed", messageOf(failure)))))
setInterval(() => undefined, 1_000)
