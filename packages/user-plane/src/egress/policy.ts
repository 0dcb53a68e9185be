import { Fault } from "@warren/base/fault.ts"
import { isIP } from "node:net"
import { z } from "zod"
import { whyNotPublic } from "./address.ts"
import { Denied } from "./denied.ts"
import { authorityOf, targetOf, type Target } from "./host.ts"
import { ruleOf, type Rule } from "./rule.ts"

const rulesMax = 1_000

export const EgressPolicy = z
  .object({
    mode: z.enum(["none", "list", "all-public"]).default("none"),
    allow: z.array(z.string().max(300)).max(rulesMax).default([]),
    allowPrivate: z.array(z.string().max(300)).max(rulesMax).default([]),
  })
  .meta({ id: "EgressPolicy", description: "What a sandbox may reach through the egress proxy." })

export type EgressPolicy = z.output<typeof EgressPolicy>

const publicPorts: ReadonlySet<number> = new Set([80, 443])

/** A policy, read once and asked for every connection. An empty list allows nothing. */
export class Policy {
  readonly data: EgressPolicy
  readonly #rules: readonly Rule[]
  readonly #private: ReadonlySet<string>

  constructor(input: z.input<typeof EgressPolicy>) {
    this.data = EgressPolicy.parse(input)
    this.#rules = this.data.allow.map(ruleOf)
    this.#private = new Set(this.data.allowPrivate.map(privateOf))
  }

  /** Whether nothing but the target may be asked of what comes through: TLS and HTTP are looked into otherwise. */
  isRaw(target: Target): boolean {
    return this.#rules.some((rule) => rule.isRaw && rule.hasHost(target) && rule.ports.has(target.port))
  }

  /** Throws unless this host and port may be asked for. What the host resolves to is asked next. */
  checkTarget(target: Target): void {
    if (this.data.mode === "none") throw new Denied("network-off", "this sandbox has no network")
    const rules = this.#rules.filter((rule) => rule.hasHost(target))
    if (rules.some((rule) => rule.ports.has(target.port))) return
    // Whoever named the private address itself has listed it.
    if (this.#private.has(authorityOf(target))) return
    const isOpen = this.data.mode === "all-public" && !target.isAddress
    if (isOpen && publicPorts.has(target.port)) return
    if (rules.length > 0 || isOpen) throw new Denied("port", `port ${target.port} of ${target.name} is not allowed`)
    if (target.isAddress) throw new Denied("plain-address", `the address ${target.name} is not allowed`)
    throw new Denied("not-listed", `${target.name} is not allowed`)
  }

  /** Throws unless this address of the target may be dialled. */
  checkAddress(target: Target, address: string): void {
    const why = isIP(address) === 0 ? "not an address" : whyNotPublic(address)
    if (why === undefined) return
    const canonical = targetOf(authorityOf({ ...target, name: address }))
    if (this.#private.has(authorityOf(canonical))) return
    throw new Denied("private-address", `${target.name} leads to ${address} (${why})`)
  }

  /** What is weaker than it could be, in plain words: for the sandbox's posture. */
  degraded(): string[] {
    const exceptions = [...this.#private].map((one) => `egress: the private address ${one} may be reached`)
    const raw = this.data.allow.filter((rule) => rule.startsWith("tcp://"))
    return [...exceptions, ...raw.map((rule) => `egress: what goes to ${rule} is not looked into`)]
  }
}

function privateOf(text: string): string {
  const target = targetOf(text)
  if (target.isAddress) return authorityOf(target)
  throw new Fault("invalid", `"${text}" in allowPrivate is not an address with a port`, {
    hint: "a name can change where it leads; write 10.1.2.3:443, and the name in allow",
  })
}
