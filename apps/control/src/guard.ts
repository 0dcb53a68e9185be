import { Fault } from "@warren/base/fault.ts"
import type { MiddlewareHandler } from "hono"

/**
 * A page from anywhere can make a browser send requests to loopback. Only our own names are answered (a rebound DNS name
 * is not one), and only to our own pages.
 */
export function onlyOurs(port: number, publicUrl: URL): MiddlewareHandler {
  const local = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]
  const hosts = new Set([...local, publicUrl.host])
  const origins = new Set([...local.map((host) => `http://${host}`), publicUrl.origin])
  return async (c, next) => {
    // Before the answer is made: headers that are added to one make it anew.
    for (const [name, value] of protective) c.header(name, value)
    if (!hosts.has(c.req.header("host") ?? "")) throw new Fault("forbidden", "this host name is not served here")
    const origin = c.req.header("origin")
    if (origin !== undefined && !origins.has(origin)) {
      throw new Fault("forbidden", "requests from other sites are not served")
    }
    await next()
  }
}

const protective = [
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["x-frame-options", "DENY"],
  ["cross-origin-resource-policy", "same-origin"],
] as const
