import { Fault } from "@warren/base/fault.ts"
import type { Bindable } from "@warren/base/sqlite/value.ts"
import { checkBindable } from "@warren/base/sqlite/value.ts"
import type { Value } from "./request.ts"

/** Into what can be bound. Whole numbers as such: SQLite would otherwise keep 5 as 5.0. */
export function bindable(value: Value | boolean): Bindable {
  const bound = convert(value)
  checkBindable(bound)
  return bound
}

function convert(value: Value | boolean): unknown {
  if (typeof value === "boolean") return value ? 1n : 0n
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== "object" || value === null) return value
  return "integer" in value ? BigInt(value.integer) : Buffer.from(value.base64, "base64")
}

/** Into what JSON can say. It has no infinity: that becomes the word. */
export function sayable(value: unknown): Value {
  if (value === null || typeof value === "string") return value
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : { integer: String(value) }
  if (value instanceof ArrayBuffer) return { base64: Buffer.from(value).toString("base64") }
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString("base64") }
  throw new Fault("internal", `the database gave a ${typeof value}`)
}

/** About what a value takes in an answer, before it is made into one. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length
  return value instanceof ArrayBuffer || value instanceof Uint8Array ? (value.byteLength * 4) / 3 : 8
}
