import { readFacts } from "@warren/drivers/oci/facts.ts"
import { networkProbes } from "@warren/drivers/oci/network-probes.ts"
import { readNetworkFacts } from "@warren/drivers/oci/network/network-facts.ts"
import { probes } from "@warren/drivers/oci/probes.ts"

/** What this machine lacks for sandboxes, in the order it bites, with the command that fixes it. */
const facts = readFacts()
const found = [...probes(facts), ...networkProbes(await readNetworkFacts())]
const isUsable = found.every(({ isMet, without }) => isMet || without !== undefined)
if (process.argv.includes("--json")) {
  console.log(JSON.stringify({ user: facts.user.name, kernel: facts.kernel, isUsable, probes: found }))
} else tell()
process.exitCode = isUsable ? 0 : 1

function tell(): void {
  console.log(`Sandboxes of ${facts.user.name} on Linux ${facts.kernel}:\n`)
  for (const { name, isMet, detail, fix, without } of found) {
    console.log(`  ${isMet ? "ok  " : without === undefined ? "MISS" : "less"}  ${name}: ${detail}`)
    if (without !== undefined) console.log(`        without it ${without}`)
    if (fix !== undefined) console.log(`        fix: ${fix}`)
  }
  console.log(isUsable ? "\nSandboxes can be made." : "\nNo sandbox can be made before what is missing is there.")
}
