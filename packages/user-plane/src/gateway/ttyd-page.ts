import { readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { GatewayRefusal } from "./refusal.ts"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
}
/** Their names change with what is in them. */
const asset = /^\/assets\/([\w-]+\.(?:js|css))$/
const yearS = 31_536_000

/** The terminal's page, with nothing from anywhere else. The terminal itself writes its styles while it runs. */
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'"

export interface PageFile {
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** The page a browser gets at a terminal's own host name, from the folder the pages were built into. */
export async function ttydFile(folder: string, path: string, framers: readonly string[]): Promise<PageFile> {
  const [, name] = asset.exec(path) ?? []
  if (name === undefined && path !== "/") throw new GatewayRefusal(404, "there is nothing at this address")
  const file = name === undefined ? join(folder, "ttyd.html") : join(folder, "assets", name)
  const body = await readFile(file).catch((cause: unknown) => {
    throw new GatewayRefusal(404, "there is nothing at this address", { cause })
  })
  return {
    headers: [
      ...["Content-Type", types[extname(file)] ?? "application/octet-stream", "Content-Length", String(body.length)],
      ...["Cache-Control", name === undefined ? "no-store" : `private, max-age=${yearS}, immutable`],
      ...["Content-Security-Policy", `${policy}; frame-ancestors ${["'self'", ...framers].join(" ")}`],
      ...["X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer"],
    ],
    body,
  }
}
