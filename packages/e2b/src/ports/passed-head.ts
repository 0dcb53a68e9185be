/** What belongs to one connection, and what was meant for us. */
const dropped = new Set([
  ...[
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
  ],
  ...["e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token", "x-access-token", "x-api-key"],
])

interface HeadOptions {
  /** Instead of the name it was asked for by. */
  readonly host: string | undefined
  /** An upgrade is passed on with the words it was asked for in. */
  readonly isUpgrade?: boolean
}

/** The head of a request as it came, letter by letter, for a program inside. */
export function passedHead(raw: readonly string[], authority: string, options: HeadOptions): string[] {
  const kept: string[] = ["Host", options.host ?? authority]
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]]
    const plain = name.toLowerCase()
    const isUpgrade = options.isUpgrade && (plain === "connection" || plain === "upgrade")
    if (name.startsWith(":") || plain === "host" || (dropped.has(plain) && !isUpgrade)) continue
    kept.push(name, value)
  }
  return kept
}

/** The head of what it answered. */
export function answeredHead(raw: readonly string[]): [string, string][] {
  const kept: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]]
    if (!dropped.has(name.toLowerCase())) kept.push([name, value])
  }
  return kept
}
