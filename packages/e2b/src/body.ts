import { Fault } from "@warren/base/fault.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import type { z } from "zod"

/** A request's body, never more of it than the limit, whatever its headers say. */
export async function bytesOf(request: Request, bytesMax: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  const chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = request.body ?? []
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Fault("invalid", "the request is too large")
    pieces.push(chunk)
  }
  return Buffer.concat(pieces)
}

/** What was sent as JSON, checked; nothing at all is an empty object. */
export function parsed<S extends z.ZodType>(schema: S, bytes: Buffer): z.output<S> {
  const result = schema.safeParse(jsonOf(bytes))
  if (result.success) return result.data
  throw new Fault("invalid", describeIssues(result.error))
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return bytes.length === 0 ? {} : JSON.parse(bytes.toString())
  } catch (cause) {
    throw new Fault("invalid", "the body is not JSON", { cause })
  }
}
