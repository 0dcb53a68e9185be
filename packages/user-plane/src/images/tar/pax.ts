import { Fault } from "@warren/base/fault.ts"

/** Reads the records of an extended header: `length key=value\n`, with values as bytes. The last of two equal keys counts. */
export function readPax(body: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>()
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(0x20, at)
    const digits = space < 0 ? "" : body.toString("latin1", at, space)
    const length = /^[1-9][0-9]{0,7}$/.test(digits) ? Number(digits) : 0
    const end = at + length
    const equals = body.indexOf(0x3d, space)
    if (length === 0 || end > body.length || equals < 0 || equals >= end || body[end - 1] !== 0x0a) {
      throw new Fault("invalid", "an extended header of the archive is damaged")
    }
    records.set(body.toString("latin1", space + 1, equals), body.subarray(equals + 1, end - 1))
    at = end
  }
  return records
}

/** One record; its length counts its own digits. */
export function writePax(key: string, value: Uint8Array): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`, "latin1"), value, Buffer.from("\n")])
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}
