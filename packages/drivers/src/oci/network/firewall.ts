import { existsSync, readFileSync } from "node:fs"
import { z } from "zod"
import { anyDevice } from "./line.ts"
import { hasTool, run } from "./tools.ts"

/** A chain that is asked whether a packet may be passed on: Docker's, ufw's, an administrator's. */
export type ForwardChain = (
  | { readonly by: "nft"; readonly family: string; readonly table: string; readonly name: string }
  /** Only its own program writes in it without making it unreadable to its owner. */
  | { readonly by: "iptables-nft" | "iptables-legacy" }
) & {
  /** Whether it drops what none of its rules is about. */
  readonly isDropping: boolean
}

const Chains = z.object({
  nftables: z.array(
    z.object({
      chain: z
        .object({
          family: z.string(),
          table: z.string(),
          name: z.string(),
          hook: z.string().optional(),
          policy: z.string().optional(),
        })
        .optional(),
    }),
  ),
})
const Rules = z.object({
  nftables: z.array(
    z.object({
      rule: z
        .object({ handle: z.int(), comment: z.string().optional(), expr: z.array(z.looseObject({})).optional() })
        .optional(),
    }),
  ),
})

/** All of them: the kernel asks every one, and what one of them drops is gone, whatever our own says. */
export async function forwardChains(): Promise<ForwardChain[]> {
  const { nftables } = Chains.parse(JSON.parse(await run("nft", ["-j", "list", "chains"])))
  const chains = nftables
    .flatMap(({ chain }) => chain ?? [])
    .filter(({ hook, family }) => hook === "forward" && ["ip", "inet"].includes(family))
    .map(({ family, table, name, policy }): ForwardChain => {
      const isTheirs = family === "ip" && table === "filter" && name === "FORWARD" && hasTool("iptables-nft")
      const isDropping = policy === "drop"
      return isTheirs ? { by: "iptables-nft", isDropping } : { by: "nft", family, table, name, isDropping }
    })
  return [...chains, ...(await legacyChains())]
}

/** Asked only where such tables are: the program makes them by looking. */
async function legacyChains(): Promise<ForwardChain[]> {
  const names = "/proc/net/ip_tables_names"
  const isUsed = existsSync(names) && readFileSync(names, "utf8").split("\n").includes("filter")
  if (!isUsed || !hasTool("iptables-legacy")) return []
  const isDropping = /^-P FORWARD DROP$/m.test(await run("iptables-legacy", ["-w", "-S", "FORWARD"]))
  return [{ by: "iptables-legacy", isDropping }]
}

/**
 * Lets our devices pass there, after everything that the owner of the chain says: only its last word, the policy, is answered.
 * `label` marks what is ours. Done twice, it is there once.
 */
export async function passIn(chain: ForwardChain, mark: string, label: string): Promise<void> {
  await blockIn(chain, label)
  const device = `${anyDevice}${mark}`
  if (chain.by === "nft") {
    const rule = `add rule ${chain.family} ${chain.table} ${chain.name}`
    const script = `${rule} iifname "${device}*" accept comment "${label}"
${rule} oifname "${device}*" ct state established,related accept comment "${label}"
`
    await run("nft", ["-f", "-"], script)
    return
  }
  const ours = ["-m", "comment", "--comment", label, "-j", "ACCEPT"]
  const back = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]
  await run(chain.by, ["-w", "-A", "FORWARD", "-i", `${device}+`, ...ours])
  await run(chain.by, ["-w", "-A", "FORWARD", "-o", `${device}+`, ...back, ...ours])
}

/** Takes away what carries the label, and nothing else. */
export async function blockIn(chain: ForwardChain, label: string): Promise<void> {
  if (chain.by !== "nft") return await blockInIptables(chain.by, label)
  const place = placeOf(chain)
  const printed = await run("nft", ["-j", "-a", "list", "chain", ...place])
  const rules = Rules.parse(JSON.parse(printed)).nftables.flatMap(({ rule }) => rule ?? [])
  const script = rules
    .filter(({ comment }) => comment === label)
    .map(({ handle }) => `delete rule ${place.join(" ")} handle ${handle}\n`)
    .join("")
  if (script !== "") await run("nft", ["-f", "-"], script)
}

async function blockInIptables(program: string, label: string): Promise<void> {
  const lines = (await run(program, ["-w", "-S", "FORWARD"])).split("\n")
  for (const line of lines.filter((one) => one.startsWith("-A FORWARD ") && one.includes(` ${label} `))) {
    // Nothing in a rule of ours has a space or a quote in it.
    await run(program, ["-w", "-D", ...line.trim().split(" ").slice(1)])
  }
}

/** Those whose last rule refuses everything: what we add behind it is never asked. firewalld's is one. */
export async function rejectingChains(): Promise<{ chain: string; fix: string }[]> {
  const found = []
  for (const chain of await forwardChains()) {
    if (chain.by === "iptables-legacy") {
      if (/-A FORWARD -j (REJECT|DROP)\b[^\n]*\s*$/.test(await run(chain.by, ["-w", "-S", "FORWARD"])))
        found.push(chain)
      continue
    }
    const printed = await run("nft", ["-j", "list", "chain", ...placeOf(chain)])
    const last = Rules.parse(JSON.parse(printed))
      .nftables.flatMap(({ rule }) => rule ?? [])
      .at(-1)
    if (isRefusal(last?.expr ?? [])) found.push(chain)
  }
  return found.map((chain) => ({ chain: titleOf(chain), fix: fixOf(chain) }))
}

/** A verdict without a condition; a counter is none. */
function isRefusal(expressions: readonly object[]): boolean {
  const names = expressions.flatMap((one) => Object.keys(one)).filter((name) => name !== "counter")
  return names.length === 1 && ["drop", "reject", "xt"].includes(names[0] ?? "")
}

function placeOf(chain: ForwardChain): [family: string, table: string, name: string] {
  return chain.by === "nft" ? [chain.family, chain.table, chain.name] : ["ip", "filter", "FORWARD"]
}

function titleOf(chain: ForwardChain): string {
  return chain.by === "nft" ? placeOf(chain).join(" ") : `FORWARD of ${chain.by}`
}

function fixOf(chain: ForwardChain): string {
  if (chain.by !== "nft") {
    const back = `-m conntrack --ctstate RELATED,ESTABLISHED`
    return `sudo ${chain.by} -I FORWARD -i ${anyDevice}+ -j ACCEPT && sudo ${chain.by} -I FORWARD -o ${anyDevice}+ ${back} -j ACCEPT`
  }
  if (chain.table === "firewalld") {
    return `sudo firewall-cmd --permanent --zone=trusted --add-interface=${anyDevice}+ && sudo firewall-cmd --reload`
  }
  const rule = `insert rule ${placeOf(chain).join(" ")}`
  return `sudo nft '${rule} iifname "${anyDevice}*" accept; ${rule} oifname "${anyDevice}*" ct state established,related accept'`
}
