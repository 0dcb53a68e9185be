import { readHardening } from "@warren/drivers/hardening/hardening-facts.ts"
import { hardeningProbes } from "@warren/drivers/hardening/hardening-probes.ts"
import { readFacts } from "@warren/drivers/oci/facts.ts"
import { networkProbes } from "@warren/drivers/oci/network-probes.ts"
import { readNetworkFacts } from "@warren/drivers/oci/network/network-facts.ts"
import { probes } from "@warren/drivers/oci/probes.ts"

/** What this machine lacks for sandboxes, in the order it bites, with the command that fixes it. */
const facts = readFacts()
const isAboutSecurity = process.argv.includes("--security")
const needed = [...probes(facts), ...networkProbes(await readNetworkFacts())]
const found = isAboutSecurity ? [...needed, ...hardeningProbes(readHardening())] : needed
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
  if (isAboutSecurity) {
    const less = found.filter(({ isMet }) => !isMet).length
    console.log(`\n${found.length - less} of ${found.length} are as they should be. No sandbox leans on the others.`)
  }
  console.log(isUsable ? "\nSandboxes can be made." : "\nNo sandbox can be made before what is missing is there.")
}
