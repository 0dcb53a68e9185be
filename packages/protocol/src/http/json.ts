import { promisify } from "node:util"
import { gzip } from "node:zlib"
import type { Context as HonoContext } from "hono"
import type { ContentfulStatusCode } from "hono/utils/http-status"

const compress = promisify(gzip)
/** Below this, compressing costs more than it saves. */
const compressCharsMin = 8 * 1024
/** Fast rather than small: most of what JSON says twice goes at the first level already. */
const level = 1

/** A value as the answer, compressed when it is big and the reader takes that. */
export async function sendJson(c: HonoContext, value: unknown, status: ContentfulStatusCode = 200): Promise<Response> {
  const text = JSON.stringify(value)
  const headers = { "content-type": "application/json" }
  if (text.length < compressCharsMin) return c.body(text, status, headers)
  const vary = { ...headers, vary: "accept-encoding" }
  if (!takesGzip(c.req.header("accept-encoding"))) return c.body(text, status, vary)
  return c.body(new Uint8Array(await compress(text, { level })), status, { ...vary, "content-encoding": "gzip" })
}

function takesGzip(accepted = ""): boolean {
  return accepted.split(",").some((one) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/i.test(one))
}
