import { Fault } from "../fault.ts"

/** What SQLite can hold, read back. */
export type Value = string | number | bigint | Buffer | null
/** What may be bound. */
export type Bindable = string | number | bigint | Uint8Array | null
export type Row = Readonly<Record<string, Value>>

/**
 * Refuses what SQLite has no type for. The binding underneath aborts the whole process on a boolean, a Date or an
 * object, so nothing reaches it unchecked.
 */
export function checkBindable(value: unknown): asserts value is Bindable {
  if (value === null || value instanceof Uint8Array) return
  if (typeof value === "string") return checkText(value)
  if (typeof value === "bigint" && BigInt.asIntN(64, value) === value) return
  if (typeof value === "number" && !Number.isNaN(value)) return
  const kind =
    value instanceof Date ? "a Date" : typeof value === "object" ? "an object" : `${typeof value} (${String(value)})`
  throw new Fault("invalid", `a database parameter cannot be ${kind}`)
}

/** The binding reads text back only up to its first NUL: what would be lost on the way back is refused on the way in. */
function checkText(value: string): void {
  if (value.includes("\0"))
    throw new Fault("invalid", "a database text cannot contain NUL", { hint: "bind it as bytes" })
}
