import type { IncomingMessage } from "node:http"
import { Denied } from "./denied.ts"
import { shown, targetOf, type Target } from "./host.ts"
import { valuesOf } from "./headers.ts"

/** The name under which the runner itself answers inside a sandbox. */
export const localName = "broker.warren"
const httpPort = 80

interface Asked {
  /** Undefined: the proxy itself. */
  readonly target: Target | undefined
  /** The same bytes that came: nothing is decoded or put in order on the way. */
  readonly path: string
}

/** Where an HTTP request wants to go. Every place that names the host must name the same one. */
export function askedOf(request: IncomingMessage, fixed: Target | undefined): Asked {
  const url = request.url ?? ""
  const [, authority, rest = ""] = /^http:\/\/([^/?#]*)([/?][\x21-\x7e]*)?$/i.exec(url) ?? []
  const path = authority === undefined ? url : rest.startsWith("/") ? rest : `/${rest}`
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes("#")) throw badRequest(url)
  const named = authority === undefined ? undefined : targetOf(authority, httpPort)
  if (fixed && named && !isSame(fixed, named)) throw mismatch(fixed, named.name)
  const target = fixed ?? named
  if (target) checkHost(request, target)
  return { target: target?.name === localName && target.port === httpPort ? undefined : target, path }
}

/** Where a CONNECT wants to go. */
export function connectTargetOf(request: IncomingMessage): Target {
  const target = targetOf(request.url ?? "")
  for (const host of valuesOf(request.rawHeaders, "host")) {
    if (!isSame(target, targetOf(host, target.port))) throw mismatch(target, host)
  }
  return target
}

function checkHost(request: IncomingMessage, target: Target): void {
  const hosts = valuesOf(request.rawHeaders, "host")
  const [host = ""] = hosts
  if (hosts.length !== 1 || !isSame(target, targetOf(host, httpPort))) throw mismatch(target, hosts.join(" and "))
}

function isSame(one: Target, other: Target): boolean {
  return one.name === other.name && one.port === other.port
}

function mismatch(target: Target, other: string): Denied {
  const message = `${target.name} was asked for, and ${shown(other) || "no host"} was named`
  return new Denied("host-mismatch", message, { where: target })
}

function badRequest(url: string): Denied {
  return new Denied("bad-request", `"${shown(url)}" cannot be asked for here`)
}
