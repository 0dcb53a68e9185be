import { Fault } from "@warren/base/fault.ts"
import type { MiddlewareHandler } from "hono"

/**
 * A page from anywhere can make a browser send requests to loopback. Only our own names are answered (a rebound DNS name
 * is not one), and only to our own pages.
 */
export function onlyLocal(port: number): MiddlewareHandler {
  const hosts = new Set([`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
  return async (c, next) => {
    if (!hosts.has(c.req.header("host") ?? "")) throw new Fault("forbidden", "this host name is not served here")
    const origin = c.req.header("origin")
    if (origin !== undefined && !hosts.has(origin.replace(/^https?:\/\//, ""))) {
      throw new Fault("forbidden", "requests from other sites are not served")
    }
    await next()
  }
}
