const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
])
/** What a Connection header cannot take away: without them the message would mean something else. */
const essential: ReadonlySet<string> = new Set(["content-length", "content-type", "cookie", "authorization", "origin"])
/** Said between the control plane and the gateway alone. An underscore is a dash to many a program. */
const between = /^x[-_]warren[-_]/i

type Raw = readonly string[]

export interface Visitor {
  readonly host: string
  readonly scheme: "http" | "https"
  readonly address: string
}

/** The head of a request on its way to a gateway: what the client says about us is not passed on. */
export function requestHead(raw: Raw, { host, scheme, address }: Visitor): string[] {
  const kept = endToEnd(raw, (name) => name === "host" || name.startsWith(":") || between.test(name))
  return ["Host", host, ...kept, "X-Warren-Scheme", scheme, "X-Warren-Client", plainAddress(address)]
}

/** How the body's end is told on the next connection. HTTP/2 has a way of its own, and none is needed where there is no body. */
export function bodyHead(raw: Raw, method: string): string[] {
  if (valuesOf(raw, "content-length").length > 0) return []
  const isChunked = valuesOf(raw, "transfer-encoding").length > 0
  const isOpen = valuesOf(raw, ":method").length > 0 && !["GET", "HEAD", "DELETE", "OPTIONS"].includes(method)
  return isChunked || isOpen ? ["Transfer-Encoding", "chunked"] : []
}

/** The head of an answer, with what the gateway says to us taken out. */
export function answerHead(raw: Raw): {
  readonly headers: Record<string, string | string[]>
  readonly refused: string | undefined
} {
  const headers: Record<string, string | string[]> = {}
  for (const [name, value] of pairsOf(endToEnd(raw, (one) => one === refusedName))) {
    const key = name.toLowerCase()
    const known = headers[key]
    headers[key] = known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value]
  }
  return { headers, refused: valuesOf(raw, refusedName)[0] }
}

const refusedName = "x-warren-refused"

export function valuesOf(raw: Raw, name: string): string[] {
  return [...pairsOf(raw)].filter(([one]) => one.toLowerCase() === name).map(([, value]) => value)
}

function endToEnd(raw: Raw, isDropped: (name: string) => boolean): string[] {
  const named = new Set(
    valuesOf(raw, "connection")
      .flatMap((value) => value.split(","))
      .map((name) => name.trim().toLowerCase())
      .filter((name) => !essential.has(name)),
  )
  const kept: string[] = []
  for (const [name, value] of pairsOf(raw)) {
    const lower = name.toLowerCase()
    if (!hopByHop.has(lower) && !named.has(lower) && !isDropped(lower)) kept.push(name, value)
  }
  return kept
}

function* pairsOf(raw: Raw): Generator<readonly [name: string, value: string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] ?? "", raw[i + 1] ?? ""]
}

/** An IPv4 address is one also where the socket speaks IPv6. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "")
}
