import { valuesOf } from "../egress/headers.ts"
import { originOf, type Authority } from "./authority.ts"
import { GatewayRefusal } from "./refusal.ts"

const safe = new Set(["GET", "HEAD", "OPTIONS"])

interface Guarded {
  readonly raw: readonly string[]
  readonly method: string
  readonly authority: Authority
  readonly isSocket: boolean
  /** A cookie speaks for whoever's page makes the browser send it; a header only for who wrote it. */
  readonly isByCookie: boolean
  /** Previews here have no host names of their own: their pages are sandboxed, and seem foreign to themselves. */
  readonly isSandboxed: boolean
}

/** Refuses what a page of somebody else has a browser do. */
export function guardBrowser(asked: Guarded): void {
  const origin = one(asked.raw, "origin")
  const isOwn = origin === originOf(asked.authority)
  if (asked.isSocket) {
    if (!isOwn && (origin !== undefined || asked.isByCookie)) throw foreign("a WebSocket")
    return
  }
  if (!asked.isByCookie) return
  const site = one(asked.raw, "sec-fetch-site")
  if (safe.has(asked.method)) {
    const isNear = site === undefined || site === "same-origin" || site === "none"
    const isNavigation = one(asked.raw, "sec-fetch-mode") === "navigate"
    if (!isNear && !isNavigation && !asked.isSandboxed) throw foreign("a request")
  } else if (!isOwn && (origin !== undefined || site !== "same-origin")) throw foreign("a change")
}

/** Whether a person's browser goes there, rather than a page or a program fetching something. */
export function isNavigation(raw: readonly string[]): boolean {
  return one(raw, "sec-fetch-mode") === "navigate"
}

/** Whether it is to be shown in a frame of a page of another site. */
export function isFramed(raw: readonly string[]): boolean {
  return one(raw, "sec-fetch-site") === "cross-site" && /^i?frame$/.test(one(raw, "sec-fetch-dest") ?? "")
}

function one(raw: readonly string[], name: string): string | undefined {
  const [value, ...others] = valuesOf(raw, name)
  return others.length > 0 ? "" : value
}

function foreign(what: string): GatewayRefusal {
  return new GatewayRefusal(403, `${what} from a page that is not this preview's own`)
}
