import { accessSync, constants, readFileSync } from "node:fs"
import { messageOf } from "@warren/base/fault.ts"
import { rejectingChains } from "./firewall.ts"
import { anyDevice, rangeContains } from "./line.ts"
import { rules } from "./rules.ts"
import { hasTool, run } from "./tools.ts"

/** What decides which networks sandboxes can have on this machine. */
export interface NetworkFacts {
  readonly isRoot: boolean
  readonly hasNft: boolean
  /** What went wrong when our rules were loaded into a network of their own; undefined: nothing. */
  readonly noRules: string | undefined
  /** The same for a pair of devices. */
  readonly noDevices: string | undefined
  /** Whether the kernel can be told to pass packets on. */
  readonly canForward: boolean
  /** Devices of others that have a route into our range of addresses. */
  readonly rangeUsers: readonly string[]
  /** Chains of others that end by refusing everything; what would let our devices pass each. */
  readonly rejecting: readonly { readonly chain: string; readonly fix: string }[]
}

/** Nothing on the machine changes: what has to be tried is tried in a network namespace that ends with the trial. */
export async function readNetworkFacts(): Promise<NetworkFacts> {
  const isRoot = process.getuid?.() === 0
  const hasNft = hasTool("nft")
  const canTry = isRoot && hasNft
  return {
    isRoot,
    hasNft,
    noRules: canTry
      ? await trial(["nft", "-f", "-"], rules({ table: "warren_trial", mark: "trial0", onlyOurs: true }))
      : undefined,
    noDevices: isRoot && hasTool("ip") ? await trial(["ip", "link", "add", "type", "veth"]) : undefined,
    canForward: isWritable("/proc/sys/net/ipv4/conf/all/forwarding"),
    rangeUsers: rangeUsers(readFileSync("/proc/net/route", "utf8")),
    rejecting: canTry ? await rejectingChains() : [],
  }
}

async function trial(command: readonly string[], script?: string): Promise<string | undefined> {
  try {
    await run("unshare", ["--net", ...command], script)
    return undefined
  } catch (failure) {
    return messageOf(failure)
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** As /proc/net/route has them: hexadecimal, in the machine's byte order. The default route leads everywhere, and is nobody's claim. */
export function rangeUsers(routes: string): string[] {
  const rows = routes
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split("\t"))
  const users = rows
    .filter(([device = "", to = "", , , , , , mask = ""]) => {
      const address = [...Buffer.from(to, "hex")].toReversed().join(".")
      return !device.startsWith(anyDevice) && mask !== "00000000" && rangeContains(address)
    })
    .map(([device = ""]) => device)
  return [...new Set(users)]
}
