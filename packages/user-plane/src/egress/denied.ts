import { Fault, type FaultCode } from "@warren/base/fault.ts"

/** Why something did not leave the sandbox: the fault's code for whoever asked, and what a person can do about it. */
export const denialReasons = {
  "network-off": { code: "forbidden", hint: "this sandbox has no network" },
  "not-listed": { code: "forbidden", hint: "add the host to the sandbox's allow-list" },
  port: { code: "forbidden", hint: "add the port to the host's entry, as host:port" },
  "plain-address": { code: "forbidden", hint: "use the host's name, or list the address itself" },
  "private-address": { code: "forbidden", hint: "to reach a private service, name its address:port in allowPrivate" },
  "bad-host": { code: "invalid", hint: "write the host as a plain domain name" },
  "bad-request": { code: "invalid", hint: "speak HTTP, CONNECT or SOCKS5 to this socket" },
  "bad-hello": { code: "invalid", hint: "the TLS greeting cannot be read" },
  "host-mismatch": { code: "forbidden", hint: "the Host header must name the host that was asked for" },
  "sni-mismatch": { code: "forbidden", hint: "the TLS server name must be the host that was asked for" },
  "sni-missing": { code: "forbidden", hint: "send a TLS server name, or list the host as tcp://host:port" },
  "unknown-protocol": { code: "forbidden", hint: "for anything but TLS and HTTP list the host as tcp://host:port" },
  "policy-changed": { code: "forbidden", hint: "the allow-list no longer has this host" },
  limit: { code: "limit", hint: "close connections first" },
  slow: { code: "timeout", hint: "a request must be complete in time" },
  unresolved: { code: "unavailable", hint: "the name has no address" },
  unreachable: { code: "unavailable", hint: "the host does not answer" },
} as const satisfies Record<string, { code: FaultCode; hint: string }>

export type DenialReason = keyof typeof denialReasons

export interface Place {
  readonly name: string
  readonly port: number
}

/** A refusal that the sandbox is told and the person can read. */
export class Denied extends Fault {
  readonly reason: DenialReason
  /** Where it wanted to go, when whoever writes it down cannot know. */
  readonly where: Place | undefined

  constructor(reason: DenialReason, message: string, options: { where?: Place; cause?: unknown } = {}) {
    super(denialReasons[reason].code, message, { hint: denialReasons[reason].hint, cause: options.cause })
    this.reason = reason
    this.where = options.where
  }
}
