const hopByHop: ReadonlySet<string> = new Set([
  "connection",
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
const essential: ReadonlySet<string> = new Set(["host", "content-length", "content-type"])

type Raw = readonly string[]

/** Name and value, one pair after the other, as they came. */
export function* pairsOf(raw: Raw): Generator<readonly [name: string, value: string]> {
  for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i] ?? "", raw[i + 1] ?? ""]
}

export function valuesOf(raw: Raw, name: string): string[] {
  return [...pairsOf(raw)].filter(([one]) => one.toLowerCase() === name).map(([, value]) => value)
}

/** What is meant for the other end: without what belongs to this connection, and without `dropped`. */
export function endToEnd(raw: Raw, dropped: (name: string) => boolean = () => false): string[] {
  const named = new Set(
    valuesOf(raw, "connection")
      .flatMap((value) => value.split(","))
      .map((name) => name.trim().toLowerCase())
      .filter((name) => !essential.has(name)),
  )
  return [...pairsOf(raw)]
    .filter(([name]) => {
      const lower = name.toLowerCase()
      return !hopByHop.has(lower) && !named.has(lower) && !dropped(lower)
    })
    .flat()
}

/** How the body's end is told, to be said again on the next connection; the parser has refused what says both. */
export function framing(raw: Raw): string[] {
  return valuesOf(raw, "transfer-encoding").length > 0 ? ["Transfer-Encoding", "chunked"] : []
}
