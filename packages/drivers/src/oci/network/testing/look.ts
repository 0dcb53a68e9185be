import { networkProbes } from "../../network-probes.ts"
import { readNetworkFacts } from "../network-facts.ts"

/** What the doctor says about the network it is started in, as JSON. */
console.log(JSON.stringify(networkProbes(await readNetworkFacts())))
