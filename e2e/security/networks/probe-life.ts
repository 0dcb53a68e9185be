import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { openOciDriver, type OciOptions } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { ip, machine } from "@warren/drivers/oci/network/testing/machine.ts"
import { defaultLimits, type SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { differences } from "../../probes/policy.ts"
import { parse, Probe, usualLimits } from "../../probes/probe.ts"

/**
 * Every attempt of the probe in a sandbox of every kind of network, on a machine whose network is this test's own: `probe-life ROOT
 * PROGRAMS`, in a new network namespace. Says how each differs from the policy, as JSON.
 */
const [root = "", programs = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const inside = "/opt/probe"
ip("link", "set", "lo", "up")
const outside = await machine("up0", "10.9.9.1", ["10.9.9.2/24", "203.0.113.10/32"])
ip("route", "add", "default", "via", "10.9.9.2")
const folder = join(root, "way-out")
mkdirSync(folder)
const modes: readonly SandboxSpec["network"][] = [
  { mode: "none" },
  { mode: "proxy", folder },
  { mode: "bridge" },
  { mode: "host" },
]

const probe = await Probe.open()
const driver = await openOciDriver({ root, programs: JSON.parse(programs) as OciOptions["programs"], log: silentLog })
const seen: Record<string, readonly string[]> = {}
let tried = 0
try {
  const image = await hostImage(join(root, "host-image"))
  const limits = { ...defaultLimits, ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }) }
  for (const network of modes) {
    const spec = specOf(image, { limits, network, profile: "dev", mounts: [probe.mount(inside)] })
    await driver.create(spec, never)
    const sandbox = await driver.start(spec.id, never)
    for (const [user, policy] of [
      ["user", "oci-dev"],
      ["root", "oci-dev-root"],
    ] as const) {
      const { stdout } = await exec(sandbox, { argv: [inside, ...probe.words, ...usualLimits], user })
      const findings = parse(stdout.toString())
      tried += findings.length
      seen[`${network.mode}, ${user}`] = differences(findings, policy)
    }
    await driver.destroy(spec.id)
  }
} finally {
  for await (const sandbox of driver.adopt(never)) await driver.destroy(sandbox.id)
  await driver[Symbol.asyncDispose]()
  await probe[Symbol.asyncDispose]()
  outside.kill()
}
console.log(JSON.stringify({ tried, seen }))
