import { endToEnd, pairsOf } from "../egress/headers.ts"
import type { Address } from "./address.ts"
import { originOf } from "./authority.ts"
import { narrowedCookie } from "./set-cookie.ts"

interface Answered {
  readonly address: Address
  /** Of a program; none where it listens on none. */
  readonly port: number | undefined
  /** Nothing of ours protects it, so there is nothing to keep other pages from. */
  readonly isPublic: boolean
  /** Who may show it in a frame, besides itself. */
  readonly framers: readonly string[]
}

/** What a program inside may not say to the browser: it would hold for more than its own pages, or for longer. */
const dropped =
  /^(?:service-worker-allowed|clear-site-data|strict-transport-security|public-key-pins.*|alt-svc|nel|report-to|reporting-endpoints|x-warren-.*|x-frame-options)$/
const crossOrigin = /^access-control-/

const sandbox = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

/** The head of the answer as the browser gets it. */
export function answerHead(raw: readonly string[], answered: Answered): string[] {
  const head: string[] = []
  const said = new Set<string>()
  for (const [name, value] of pairsOf(endToEnd(raw))) {
    const lower = name.toLowerCase()
    const kept = passed(lower, value, answered)
    if (kept === undefined) continue
    said.add(lower)
    head.push(name, kept)
  }
  for (const [name, value] of added(answered)) if (name === csp || !said.has(name.toLowerCase())) head.push(name, value)
  return head
}

function passed(name: string, value: string, answered: Answered): string | undefined {
  if (dropped.test(name) || (!answered.isPublic && crossOrigin.test(name))) return undefined
  if (name === "set-cookie") return narrowedCookie(value, answered.address.prefix)
  return name === "location" ? movedTo(value, answered) : value
}

const csp = "Content-Security-Policy"

/** A policy of the program's own stays: of two, a browser keeps both. */
function* added({ address, isPublic, framers }: Answered): Generator<readonly [string, string]> {
  const frames = `frame-ancestors ${["'self'", ...framers].join(" ")}`
  yield [csp, address.mode === "path" ? `${sandbox}; ${frames}` : frames]
  yield ["X-Content-Type-Options", "nosniff"]
  // Not `no-referrer`: with it a browser says `Origin: null` for a page's own forms.
  yield ["Referrer-Policy", "same-origin"]
  yield ["Cross-Origin-Opener-Policy", "same-origin-allow-popups"]
  if (!isPublic && address.mode === "host") yield ["Cross-Origin-Resource-Policy", "same-origin"]
}

/** A redirect leads to where the browser finds it. Nobody follows it here. */
export function movedTo(to: string, { address, port }: Pick<Answered, "address" | "port">): string {
  const { authority, prefix } = address
  const [, host, rest = ""] = /^https?:\/\/([^/?#\\]*)([^]*)$/i.exec(to) ?? []
  if (host === undefined) return to.startsWith("/") && !/^\/[/\\]/.test(to) ? `${prefix}${to}` : to
  const own = [`${authority.host}${authority.port}`, `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]
  return own.includes(host.toLowerCase()) ? `${originOf(authority)}${prefix}${rest === "" ? "/" : rest}` : to
}
