import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import type { Sandbox } from "../../../driver.ts"
import { exec } from "../../../init/exec.ts"
import { specOf } from "../../../spec-of.ts"
import { openOciDriver, type OciDriver, type OciOptions } from "../../driver.ts"
import { hostImage } from "../../host-image.ts"
import { ip, machine } from "./machine.ts"

/**
 * A sandbox on a machine whose firewalls pass nothing on: `firewall-life ROOT PROGRAMS`, in a new network namespace. There are
 * three of them, as Docker and ufw (old and new) and a careful administrator leave them. Says what was seen, as JSON.
 */
const [root = "", programs = "{}"] = process.argv.slice(2)
const never = new AbortController().signal
const open = (): Promise<OciDriver> =>
  openOciDriver({ root, programs: JSON.parse(programs) as OciOptions["programs"], log: silentLog })
const print = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { stdio: ["ignore", "pipe", "ignore"] }).toString()
/** Counters go up with every packet, and handles with every rule. */
const firewalls = (): string =>
  [print("nft", "-s", "list", "ruleset"), print("iptables-legacy", "-S"), print("iptables-nft", "-S")].join("\n")
const ask = async (sandbox: Sandbox, host: string): Promise<string> => {
  const command = `timeout 3 bash -c "cat </dev/tcp/${host}/8080" 2>/dev/null || echo nothing`
  return (await exec(sandbox, { argv: ["bash", "-c", command] })).stdout.toString().trim()
}

ip("link", "set", "lo", "up")
const outside = await machine("up0", "10.9.9.1", ["10.9.9.2/24", "203.0.113.10/32", "203.0.113.11/32"])
ip("route", "add", "default", "via", "10.9.9.2")
for (const program of ["iptables-nft", "iptables-legacy"]) execFileSync(program, ["-P", "FORWARD", "DROP"])
// What an administrator forbids by name stays forbidden.
execFileSync("iptables-nft", ["-A", "FORWARD", "-d", "203.0.113.11", "-j", "REJECT"])
execFileSync("nft", [
  "add table inet careful; add chain inet careful f { type filter hook forward priority 0; policy drop; }",
])

let driver = await open()
const seen: Record<string, unknown> = {}
try {
  seen["before"] = firewalls()
  const spec = specOf(await hostImage(join(root, "host-image")), { network: { mode: "bridge" } })
  const unlimited = driver.abilities.diskLimit ? spec : { ...spec, limits: { ...spec.limits, diskBytes: 0 } }
  await driver.create(unlimited, never)
  const sandbox = await driver.start(spec.id, never)
  seen["reached"] = [await ask(sandbox, "203.0.113.10"), await ask(sandbox, "203.0.113.11")]
  const open1 = firewalls()
  await driver[Symbol.asyncDispose]()
  driver = await open()
  for await (const adopted of driver.adopt(never)) seen["adopted"] = await ask(adopted, "203.0.113.10")
  seen["once"] = firewalls() === open1
  // The administrator has second thoughts while it runs.
  execFileSync("iptables-legacy", ["-P", "FORWARD", "ACCEPT"])
  await driver.destroy(spec.id)
  execFileSync("iptables-legacy", ["-P", "FORWARD", "DROP"])
  seen["after"] = firewalls()
} finally {
  for await (const sandbox of driver.adopt(never)) await driver.destroy(sandbox.id)
  await driver[Symbol.asyncDispose]()
  outside.kill()
}
console.log(JSON.stringify(seen))
