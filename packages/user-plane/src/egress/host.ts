import { isIPv4, isIPv6 } from "node:net"
import { domainToASCII } from "node:url"
import { Denied } from "./denied.ts"

/** A host in its one spelling: what is checked is what is resolved, compared, logged and dialled. */
export interface Host {
  readonly name: string
  readonly isAddress: boolean
}

export interface Target extends Host {
  readonly port: number
}

const nameCharsMax = 253
const shownCharsMax = 100
const label = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
const domain = new RegExp(`^${label}(?:\\.${label})*$`)
/** What other programs read as a number, and so as an address in disguise: `127.1`, `0x7f000001`, `017700000001`. */
const numeric = /^(?:\d+|0x[0-9a-f]*)$/

/** Lower case, no trailing dot, IDNA in ASCII. Refuses everything that two programs could read in two ways. */
export function canonicalHost(text: string): Host {
  const bare = /^\[(.*)\]$/s.exec(text)?.[1]
  if (isIPv6(bare ?? text) && !text.includes("%")) return { name: canonicalIPv6(bare ?? text), isAddress: true }
  const name = asciiOf(text).replace(/\.$/, "")
  if (name.length > nameCharsMax || !domain.test(name)) throw badHost(text)
  if (isIPv4(name)) return { name, isAddress: true }
  if (numeric.test(name.slice(name.lastIndexOf(".") + 1))) throw badHost(text)
  return { name, isAddress: false }
}

const authority = /^(\[[^[\]]*\]|[^:[\]]*)(?::([1-9]\d{0,4}))?$/

/** `host`, `host:port`, `[v6]:port`. */
export function targetOf(text: string, defaultPort?: number): Target {
  const parts = authority.exec(text)
  if (!parts) throw badHost(text)
  const [, host = "", digits] = parts
  const port = digits === undefined ? defaultPort : Number(digits)
  if (port === undefined || port > 65_535) throw badHost(text)
  return { ...canonicalHost(host), port }
}

/** As it is written in a URL or a Host header. */
export function authorityOf({ name, port }: Target): string {
  return `${name.includes(":") ? `[${name}]` : name}:${port}`
}

/** Something that came from a sandbox, fit for a log and a terminal. */
export function shown(text: string): string {
  const printable = text.replace(/[^\x21-\x7e]/g, "?")
  return printable.length > shownCharsMax ? `${printable.slice(0, shownCharsMax)}…` : printable
}

function asciiOf(text: string): string {
  if (text.length > nameCharsMax + 1) throw badHost(text)
  // oxlint-disable-next-line no-control-regex -- those are what it looks for
  if (/[\x00-\x20\x7f%@/\\?#:[\]<>^|]/.test(text)) throw badHost(text)
  const lower = text.toLowerCase()
  // The URL standard's function turns numbers into addresses; plain ASCII does not need it.
  const isPlain = /^[\x21-\x7e]*$/.test(lower) && !lower.includes("xn--")
  const ascii = isPlain ? lower : domainToASCII(lower)
  if (ascii === "") throw badHost(text)
  return ascii
}

function canonicalIPv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}

function badHost(text: string): Denied {
  const name = shown(text)
  return new Denied("bad-host", `"${name}" is not a host`, { where: { name, port: 0 } })
}
