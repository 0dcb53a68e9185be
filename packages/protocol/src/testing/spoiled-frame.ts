import { encodeJson } from "@warren/base/frame.ts"
import fc from "fast-check"

/** A frame of such a message, mostly whole, sometimes with a byte changed; or any bytes, at most so many. */
export function spoiledFrame(message: fc.Arbitrary<object>, bytesMax: number): fc.Arbitrary<Buffer> {
  const changed = fc.tuple(message, fc.nat(), fc.nat(255)).map(([value, place, byte]) => {
    const bytes = encodeJson(value)
    bytes[place % bytes.length] = byte
    return bytes
  })
  return fc.oneof(
    { weight: 6, arbitrary: message.map((value) => encodeJson(value)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: bytesMax }).map((bytes) => Buffer.from(bytes)) },
    { weight: 2, arbitrary: changed },
  )
}
