import { Readable } from "node:stream"
import type { HttpBindings } from "@hono/node-server"
import type { Context as HonoContext } from "hono"

/** The bytes of a request. Taken from the server itself where there is one: a web stream around them costs as much as all the rest. */
export function requestBody(c: HonoContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  // Left open when nobody reads on: its connection still carries the answer.
  if (incoming instanceof Readable) return incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  return c.req.raw.body ?? []
}
