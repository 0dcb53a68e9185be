import { isIP } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import type { Wishes } from "./plane.ts"

const hosts = z.array(z.string().max(300)).max(256)

/** What a sandbox may reach. */
export const Egress = z.object({
  allowOut: hosts.optional(),
  denyOut: hosts.optional(),
  rules: z.record(z.string(), z.array(z.unknown())).optional(),
  egressProxy: z.object({ address: z.string() }).optional(),
})
export type Egress = z.output<typeof Egress>

/** Who may reach it, and how. */
export const Network = z.object({
  allowPublicTraffic: z.boolean().optional(),
  maskRequestHost: z.string().max(300).optional(),
  httpsPorts: z.array(z.int().min(1).max(65_535)).max(64).optional(),
})

const everything = new Set(["0.0.0.0/0", "::/0"])

/**
 * Theirs in ours: the egress proxy reaches every public host, or only those of a list. What is denied by address while
 * everything else is allowed has no counterpart: refused, rather than not kept to.
 */
export function wayOut(egress: Egress, hasInternet: boolean | undefined): NonNullable<Wishes["network"]> {
  if (Object.values(egress.rules ?? {}).some((rules) => rules.length > 0))
    throw new Fault("unsupported", "network.rules: requests are not changed on their way out", {
      hint: "give the session a key instead",
    })
  if (egress.egressProxy) throw new Fault("unsupported", "network.egressProxy: there is one way out, and it is ours")
  const denied = egress.denyOut ?? []
  const one = denied.find((host) => !everything.has(host))
  const isClosed = hasInternet === false || denied.length > 0
  if (one !== undefined && !denied.some((host) => everything.has(host)) && hasInternet !== false) {
    throw new Fault("unsupported", `network.denyOut: ${one} alone cannot be denied`, {
      hint: "deny 0.0.0.0/0 and allow what is needed",
    })
  }
  const allow = (egress.allowOut ?? []).filter((host) => !everything.has(host)).map(hostOf)
  const isOpen = !isClosed || (egress.allowOut ?? []).some((host) => everything.has(host))
  return { mode: "proxy", access: isOpen ? "all-public" : "list", allow }
}

function hostOf(given: string): string {
  const [address = "", bits] = given.split("/")
  if (bits === undefined) return given
  const whole = isIP(address) === 6 ? "128" : "32"
  if (bits === whole) return address
  throw new Fault("unsupported", `network.allowOut: ${given} is a range; hosts and single addresses can be allowed`)
}
