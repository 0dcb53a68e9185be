import { createHash } from "node:crypto"
import { valuesOf } from "../egress/headers.ts"

/** Something the gateway itself says. */
export interface Notice {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly hint?: string | undefined
  /** The page asks again by itself. */
  readonly isPassing?: boolean
}

const style = `:root{color-scheme:light dark;font:15px/1.6 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText}
main{max-width:34rem;padding:2rem}h1{font-size:1.15rem;font-weight:600;margin:0 0 .5rem}
p{margin:.25rem 0;opacity:.75}small{opacity:.55}`
const styleHash = createHash("sha256").update(style).digest("base64")
const againS = 1

/** As a page for a browser that shows it, and as plain text for everything else. */
export function noticeAnswer(
  notice: Notice,
  raw: readonly string[],
  framers: readonly string[] = [],
): { headers: string[]; body: string } {
  const isPage = valuesOf(raw, "accept").some((value) => value.includes("text/html"))
  const { title, text, hint } = notice
  const body = isPage ? pageOf(notice) : `${title}: ${text}${hint === undefined ? "" : ` (${hint})`}\n`
  const frames = ["'self'", ...framers].join(" ")
  const headers = [
    ...["Content-Type", isPage ? "text/html; charset=utf-8" : "text/plain; charset=utf-8"],
    ...["Content-Length", String(Buffer.byteLength(body)), "Cache-Control", "no-store"],
    ...["Content-Security-Policy", `default-src 'none'; style-src 'sha256-${styleHash}'; frame-ancestors ${frames}`],
    ...["X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer"],
    ...(notice.isPassing ? ["Retry-After", String(againS)] : []),
  ]
  return { headers, body }
}

function pageOf({ status, title, text, hint, isPassing }: Notice): string {
  const again = isPassing ? `<meta http-equiv="refresh" content="${againS}">` : ""
  const more = hint === undefined ? "" : `<p>${escaped(hint)}</p>`
  const waits = isPassing ? "<p>This page looks again by itself.</p>" : ""
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">${again}
<meta name="viewport" content="width=device-width,initial-scale=1"><title>${escaped(title)}</title><style>${style}</style></head>
<body><main><h1>${escaped(title)}</h1><p>${escaped(text)}</p>${more}${waits}<small>Warren · ${status}</small></main></body></html>
`
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "")
}
