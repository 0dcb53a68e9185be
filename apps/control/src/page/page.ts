import { Hono, type Context } from "hono"
import type { BuiltFiles } from "./files.ts"

/** Deep links: the first words of paths that the page knows by itself. What follows `/s/` and is no view of it is the gateway's. */
const places = /^\/(?:$|(?:join|login|new|images|workspaces|secrets|memories|settings|admin)(?:\/|$))/
const session = /^\/s\/[^/]+(?:\/(?:chat|terminal|files|changes|preview|editor|desktop|details|compare))?\/?$/

/** The page: its files, and itself for every path it has something to show for. */
export function pageRoutes(files: BuiltFiles, publicUrl: URL, previewDomain: string): Hono {
  const app = new Hono()
  const policy = policyFor(publicUrl, previewDomain)
  app.get("*", (c, next) => {
    const { pathname } = new URL(c.req.url)
    if (places.test(pathname) || session.test(pathname)) return index(c, files, policy)
    const found = pathname.endsWith(".html") ? undefined : files.find(pathname, accepted(c))
    if (!found) return next()
    // A file whose name holds the digest of its content never changes.
    const isHashed = pathname.startsWith("/assets/")
    c.header("cache-control", isHashed ? "public, max-age=31536000, immutable" : "public, max-age=3600")
    // A picture that is opened by itself is a document, too.
    c.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
    return send(c, found)
  })
  return app
}

function index(c: Context, files: BuiltFiles, policy: string): Response | Promise<Response> {
  const found = files.find("/index.html", accepted(c))
  if (!found) return c.notFound()
  c.header("cache-control", "no-cache")
  c.header("content-security-policy", policy)
  c.header("cross-origin-opener-policy", "same-origin")
  c.header("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
  return send(c, found)
}

function send(c: Context, { body, type, encoding }: NonNullable<ReturnType<BuiltFiles["find"]>>): Response {
  c.header("vary", "accept-encoding")
  if (encoding) c.header("content-encoding", encoding)
  return c.body(body, 200, { "content-type": type })
}

function accepted(c: Context): string {
  return c.req.header("accept-encoding") ?? ""
}

/**
 * No script but ours, nothing from anywhere else. Styles may be made by the page, because a terminal draws its colours with style
 * elements and attributes; of what an agent writes, the page itself takes them away. Previews are framed from names of their own.
 */
function policyFor({ protocol, port }: URL, previewDomain: string): string {
  const previews = previewDomain === "" ? "" : ` ${protocol}//*.${previewDomain}${port && `:${port}`}`
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    `frame-src 'self'${previews}`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ")
}
