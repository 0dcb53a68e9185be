import { Fault } from "@warren/base/fault.ts"
import type { HttpBindings, Http2Bindings } from "@hono/node-server"
import type { Context, MiddlewareHandler } from "hono"

/**
 * A page from anywhere can make a browser send requests to loopback. Only our own names are answered (a rebound DNS name
 * is not one), and only to our own pages.
 */
export function onlyOurs(port: number, publicUrl: URL, hasTls: boolean, also: readonly URL[] = []): MiddlewareHandler {
  const local = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]
  const hosts = new Set([...local, publicUrl.host, ...also.map(({ host }) => host)])
  const origins = new Set([
    ...local.map((host) => `${hasTls ? "https" : "http"}://${host}`),
    ...[publicUrl, ...also].map(({ origin }) => origin),
  ])
  // A browser would hold every other server on its own machine to it.
  const isStrict = hasTls && publicUrl.hostname !== "localhost"
  return async (c, next) => {
    // Before the answer is made: headers that are added to one make it anew.
    for (const [name, value] of protective) c.header(name, value)
    const host = hostOf(c)
    if (isStrict && host === publicUrl.host) c.header("strict-transport-security", "max-age=31536000")
    if (!hosts.has(host)) throw new Fault("forbidden", "this host name is not served here")
    if (!isPlain(targetOf(c))) throw new Fault("invalid", "this path could be read in two ways")
    const origin = c.req.header("origin")
    if (origin !== undefined && !origins.has(origin)) {
      throw new Fault("forbidden", "requests from other sites are not served")
    }
    await next()
  }
}

/** HTTP/2 has its own word for it, which then is the one that counts. */
function hostOf(c: Context): string {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings | Http2Bindings>
  if (incoming && "authority" in incoming && incoming.authority) return incoming.authority
  return c.req.header("host") ?? ""
}

/** As it came: what a request has become by now was read by somebody. */
function targetOf(c: Context): string {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings | Http2Bindings>
  return incoming?.url ?? c.req.path
}

/** A path and nothing else, in which no step leads back: whoever reads it, it is the same one. */
function isPlain(target: string): boolean {
  const [path = ""] = target.split("?")
  return path.startsWith("/") && !/^\/\/|\\/.test(path) && !path.split("/").some((step) => stepBack.test(step))
}

const stepBack = /^(?:\.|%2e){1,2}$/i

const protective = [
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["x-frame-options", "DENY"],
  ["cross-origin-resource-policy", "same-origin"],
] as const
