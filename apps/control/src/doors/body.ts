import { Fault } from "@warren/base/fault.ts"

/** A request's body, never more of it than the limit, whatever its headers say. */
export async function bodyOf(request: Request, bytesMax: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  const chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = request.body ?? []
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Fault("invalid", "request body too large")
    pieces.push(chunk)
  }
  return Buffer.concat(pieces)
}

export type Fields = Readonly<Record<string, unknown>>

export async function jsonBody(request: Request, bytesMax: number): Promise<Fields> {
  const text = (await bodyOf(request, bytesMax)).toString()
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields
  } catch {
    // Falls through to the one answer for everything that is not an object.
  }
  throw new Fault("invalid", "the body is not a JSON object")
}

/** A field that is a text, or is not there; `null` is not there. */
export function textField(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === "string") return value
  throw new Fault("invalid", `${name} must be a string`)
}

export function numberField(fields: Fields, name: string, min: number, max: number): number | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === "number" && value >= min && value <= max) return value
  throw new Fault("invalid", `${name} must be a number from ${min} to ${max}`)
}
