import { Fault } from "@warren/base/fault.ts"

export const environmentName = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

const sizeUnits: Readonly<Record<string, number>> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }
const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `512m`, `1.5g`, `2gb`, `1048576`: bytes. */
export function readSize(text: string, name: string): number {
  const [, digits, unit = ""] = /^(\d{1,15}(?:\.\d{1,6})?)([a-z]?)(?:i?b)?$/i.exec(text) ?? []
  const factor = sizeUnits[unit.toLowerCase()]
  const bytes = digits === undefined || factor === undefined ? Number.NaN : Math.round(Number(digits) * factor)
  if (Number.isSafeInteger(bytes)) return bytes
  throw new Fault("invalid", `${name} must be a size such as 512m or 2g, not "${text}"`)
}

/** `90s`, `1.5h`, `7d`: milliseconds. */
export function readDuration(text: string, name: string): number {
  const [, digits, unit = ""] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/.exec(text) ?? []
  const ms = digits === undefined ? Number.NaN : Math.round(Number(digits) * (durationUnits[unit] ?? Number.NaN))
  if (Number.isSafeInteger(ms)) return ms
  throw new Fault("invalid", `${name} must be a time such as 90s, 10m or 2h, not "${text}"`)
}

export function readWhole(text: string, name: string, range: { min: number; max: number }): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= range.min && number <= range.max) return number
  throw new Fault("invalid", `${name} must be a whole number from ${range.min} to ${range.max}, not "${text}"`)
}

export function readPort(text: string, name: string): number {
  return readWhole(text, name, { min: 1, max: 65_535 })
}
