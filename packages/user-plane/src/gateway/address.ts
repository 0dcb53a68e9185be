import { isId } from "@warren/base/id.ts"
import { TunnelName } from "@warren/protocol/user-plane/tunnels.ts"
import type { SessionId } from "../sessions/session-record.ts"
import type { Authority, HostNames } from "./authority.ts"
import { builtIns } from "./built-in.ts"
import { GatewayRefusal } from "./refusal.ts"

/** What a request is for: one port of one session, and the bytes that are asked of it there. */
export interface Address {
  /** By the gateway's paths, or by a host name of its own. */
  readonly mode: "path" | "host"
  readonly authority: Authority
  readonly session: SessionId
  /** A port, or a tunnel's name, as it was asked for. */
  readonly target: string
  /** What stands before the inside's own paths; empty in host mode. */
  readonly prefix: string
  /** As it is asked for inside, byte for byte. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly query: string
}

/** What a request is for, when it is not for something inside. */
export type Asked =
  | { readonly kind: "inside"; readonly address: Address }
  | { readonly kind: "health" }
  | { readonly kind: "tunnels"; readonly name: string | undefined }
  | { readonly kind: "moved"; readonly to: string }

const insidePath = new RegExp(`^(/s/([^/]+)/(?:t/([^/]+)|(${builtIns.join("|")})))(/.*)?$`)
const label = /^([a-z0-9-]+)-([0-9a-z]{20})$/

/** Reads a request's target once. What is authorised is what is passed on; what could be read in two ways is refused. */
export function askedOf(target: string, authority: Authority, names: HostNames): Asked {
  const { path, query } = split(target)
  const isOwn = names.domain !== "" && authority.host.endsWith(`.${names.domain}`)
  if (isOwn) {
    const [, name = "", body = ""] = label.exec(authority.host.slice(0, -names.domain.length - 1)) ?? []
    checkPath(path, loose)
    return {
      kind: "inside",
      address: addressOf({ mode: "host", authority, prefix: "", path, query }, `ses_${body}`, name),
    }
  }
  checkPath(path, strict)
  if (path === "/health") return { kind: "health" }
  const [, tunnel] = /^\/api\/tunnels(?:\/([^/]+))?$/.exec(path) ?? []
  if (path.startsWith("/api/tunnels") && (path === "/api/tunnels" || tunnel !== undefined))
    return { kind: "tunnels", name: tunnel }
  const [, prefix, session = "", byName, own, rest] = insidePath.exec(path) ?? []
  if (prefix === undefined) throw new GatewayRefusal(404, "there is nothing at this address")
  if (rest === undefined) return { kind: "moved", to: `${prefix}/${query}` }
  return {
    kind: "inside",
    address: addressOf({ mode: "path", authority, prefix, path: rest, query }, session, byName ?? own ?? ""),
  }
}

export function portOf(target: string): number | undefined {
  return /^[1-9]\d{0,4}$/.test(target) && Number(target) <= 65_535 ? Number(target) : undefined
}

/** The first part of the host name of a preview. */
export function labelOf(session: string, target: string): string {
  return `${target}-${session.slice("ses_".length)}`
}

export function prefixOf(session: string, target: string): string {
  return `/s/${session}/t/${target}`
}

function addressOf(rest: Omit<Address, "session" | "target">, session: string, target: string): Address {
  if (!isId("ses", session)) throw new GatewayRefusal(404, "there is nothing at this address")
  if (portOf(target) === undefined && !TunnelName.safeParse(target).success)
    throw new GatewayRefusal(400, "that is neither a port nor the name of a tunnel")
  return { ...rest, session, target }
}

function split(target: string): { path: string; query: string } {
  if (!target.startsWith("/")) throw new GatewayRefusal(400, "the request is not for a path")
  if (target.includes("#")) throw new GatewayRefusal(400, "the request has a fragment")
  const at = target.indexOf("?")
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) }
}

type Ambiguity = readonly [pattern: RegExp, what: string]

/** Another reader would see another path in these. */
const loose: readonly Ambiguity[] = [
  [/[^\x21-\x7e]/, "characters that are not for paths"],
  [/\\/, "a backslash"],
  [/%(?![0-9a-fA-F]{2})/, "a percent sign that encodes nothing"],
  [/%(?:00|5c|0a|0d)/i, "an encoded backslash, line end or NUL"],
  [/(?:^|\/|%2f)(?:\.|%2e){1,2}(?:$|\/|%2f|;)/i, "a step up or in place"],
  [/%25(?:2e|2f|5c)/i, "something encoded twice"],
  [/^\/(?:\/|%2f)/i, "an empty first step"],
]
/** In path mode the path also says whose it is: nothing in it may be seen as one step by us and as two by others. */
const strict: readonly Ambiguity[] = [
  ...loose,
  [/\/\//, "an empty step"],
  [/%2[ef]/i, "an encoded slash or dot"],
  [/;/, "a semicolon"],
  [/["<>`{}^|]/, "characters that a browser encodes"],
]

function checkPath(path: string, ambiguities: readonly Ambiguity[]): void {
  for (const [pattern, what] of ambiguities)
    if (pattern.test(path)) throw new GatewayRefusal(400, `the path has ${what}`)
}
