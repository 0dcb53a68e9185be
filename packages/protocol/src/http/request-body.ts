import { Readable } from "node:stream"
import type { HttpBindings } from "@hono/node-server"
import { Fault } from "@warren/base/fault.ts"
import type { Context as HonoContext } from "hono"

/** The bytes of a request. Taken from the server itself where there is one: a web stream around them costs as much as all the rest. */
export function requestBody(c: HonoContext): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  return incoming instanceof Readable ? untilGone(incoming) : (c.req.raw.body ?? [])
}

async function* untilGone(incoming: Readable): AsyncGenerator<Uint8Array, void, void> {
  try {
    // Left open when nobody reads on: its connection still carries the answer.
    yield* incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  } catch (cause) {
    // Whoever breaks off in the middle of a body is not there to be answered, and nothing here is broken.
    throw new Fault("cancelled", "the caller went away", { cause })
  }
}
