import { isId } from "@warren/base/id.ts"
import { Fault } from "@warren/base/fault.ts"

/** What of a request says that it is for a gateway, and for whose. */
export interface Head {
  readonly url: string
  /** As it came, from the one place that counts. */
  readonly host: string
}

export interface GatewayNames {
  /** Previews are at names below it; empty where there are none. */
  readonly domain: string
  /** Where the gateway's own paths are, beside the API's. With ports. */
  readonly hosts: ReadonlySet<string>
}

/** The session a request is for; undefined when that is in its token alone (the API for programs inside). */
export interface ForGateway {
  readonly session: string | undefined
}

const ownPath = /^\/+s\/+([^/?#]*)\/+(?:t\/|(?:t|vscode|vnc|ttyd)(?:[/?#;]|$))/
const api = /^\/api\/tunnels(?:[/?#]|$)/
const label = /^[a-z0-9-]+-([0-9a-z]{20})$/

/** What a request is for, if it is one for a gateway. How exactly is read by the gateway, once; here it is only sent on. */
export function askedOf({ url, host }: Head, names: GatewayNames): ForGateway | undefined {
  const below = labelsOf(host, names.domain)
  if (below !== undefined) return { session: `ses_${label.exec(below)?.[1] ?? ""}` }
  const path = pathOf(url)
  if (api.test(path)) return { session: undefined }
  const [, session] = ownPath.exec(path) ?? []
  return session === undefined ? undefined : { session }
}

/** Refuses what can be for nobody, before anybody is asked about it. */
export function checkAsked({ url, host }: Head, { session }: ForGateway, names: GatewayNames): void {
  const isBelow = labelsOf(host, names.domain) !== undefined
  if (!isBelow && !names.hosts.has(host.toLowerCase()))
    throw new Fault("forbidden", "this host name is not served here")
  if (!url.startsWith("/")) throw new Fault("invalid", "the request is not for a path")
  if (session !== undefined && !isId("ses", session)) throw new Fault("not_found", "there is nothing at this address")
}

/** Also of a request in absolute form, which is then refused and not taken for something else. */
function pathOf(url: string): string {
  return url.startsWith("/") ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "")
}

function labelsOf(host: string, domain: string): string | undefined {
  if (domain === "") return undefined
  const name = host.toLowerCase().replace(/:\d+$/, "")
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined
}
