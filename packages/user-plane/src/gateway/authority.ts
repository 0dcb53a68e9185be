import { valuesOf } from "../egress/headers.ts"
import { GatewayRefusal } from "./refusal.ts"

/** The host a request was sent to, in the one form it is compared and passed on in. */
export interface Authority {
  readonly host: string
  /** `:8080`, or nothing. */
  readonly port: string
  readonly scheme: "http" | "https"
}

export interface HostNames {
  /** Previews are at `<name>-<session>.<domain>`; empty where there are no such names. */
  readonly domain: string
  /** Where the gateway's own paths are, besides the domain itself. */
  readonly hosts: readonly string[]
}

const pattern = /^([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]{2,45}\])(:[1-9]\d{0,4})?$/
const portMax = 65_535

/** Of a request's raw headers. Two hosts, or one that is none of ours, are refused: nobody may choose who we seem to be. */
export function authorityOf(raw: readonly string[], names: HostNames): Authority {
  const [value, ...others] = valuesOf(raw, "host")
  if (value === undefined || others.length > 0) throw new GatewayRefusal(400, "a request has exactly one Host")
  const [, host = "", port = ""] = pattern.exec(value.toLowerCase()) ?? []
  if (host === "" || Number(port.slice(1)) > portMax) throw new GatewayRefusal(400, "the Host is not one")
  if (!isOurs(host, names)) throw new GatewayRefusal(421, "this host name is not served here")
  return { host, port, scheme: schemeOf(raw) }
}

export function originOf({ scheme, host, port }: Authority): string {
  return `${scheme}://${host}${port}`
}

function isOurs(host: string, { domain, hosts }: HostNames): boolean {
  return hosts.includes(host) || (domain !== "" && (host === domain || host.endsWith(`.${domain}`)))
}

/** Whether the same browser also finds `<label>.<domain>` here: it came by the domain, or by loopback, where such names lead too. */
export function hasOwnNames({ host }: Authority, { domain }: HostNames): boolean {
  if (domain === "") return false
  const isLoopback = host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)
  return host === domain || host.endsWith(`.${domain}`) || (isLoopback && /(?:^|\.)localhost$/.test(domain))
}

/** As the control plane says it was reached: whoever can open the gateway's socket is it, or the owner. */
function schemeOf(raw: readonly string[]): "http" | "https" {
  const [value, ...others] = valuesOf(raw, "x-warren-scheme")
  return value === "https" && others.length === 0 ? "https" : "http"
}
