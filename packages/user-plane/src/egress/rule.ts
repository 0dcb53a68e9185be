import { Fault } from "@warren/base/fault.ts"
import { canonicalHost, type Host } from "./host.ts"

/** One entry of an allow-list. */
export interface Rule {
  readonly ports: ReadonlySet<number>
  /** `tcp://`: any protocol, not looked into. */
  readonly isRaw: boolean
  hasHost(host: Host): boolean
}

const form = /^(tcp:\/\/)?(\*\.)?(\[[^[\]]*\]|[^:[\]]*)(?::([1-9]\d{0,4}(?:,[1-9]\d{0,4})*))?$/
const webPorts = [80, 443]

/** `example.com`, `*.example.com` (what is below it, not itself), `example.com:443,8443`, `192.0.2.1`, `tcp://host:22`. */
export function ruleOf(text: string): Rule {
  const [, raw, wildcard, name = "", list] = form.exec(text) ?? []
  const ports = list?.split(",").map(Number) ?? (raw ? [] : webPorts)
  if (ports.length === 0 || ports.some((port) => port > 65_535)) throw badRule(text)
  const host = hostOf(name, text)
  if (wildcard && (host.isAddress || !host.name.includes("."))) throw badRule(text)
  const suffix = `.${host.name}`
  return {
    ports: new Set(ports),
    isRaw: raw !== undefined,
    // A name is never spelled like an address, nor does one end like the other.
    hasHost: (other) => (wildcard ? other.name.endsWith(suffix) : other.name === host.name),
  }
}

function hostOf(name: string, text: string): Host {
  try {
    return canonicalHost(name)
  } catch (cause) {
    throw badRule(text, cause)
  }
}

function badRule(text: string, cause?: unknown): Fault {
  return new Fault("invalid", `"${text}" is not a rule for the allow-list`, {
    hint: "write example.com, *.example.com, example.com:8443, or tcp://example.com:22; for everything, mode all-public",
    cause,
  })
}
