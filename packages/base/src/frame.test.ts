import fc from "fast-check"
import { keptBytes } from "./testing/kept-bytes.ts"
import { describe, expect, test } from "vitest"
import { Fault } from "./fault.ts"
import {
  decodeJson,
  encodeJson,
  encodeStream,
  FrameDecoder,
  frameLimits,
  isJson,
  streamTags,
  type StreamTag,
} from "./frame.ts"

type Sent = { readonly json: Record<string, unknown> } | { readonly tag: StreamTag; readonly bytes: Uint8Array }

const json = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 4 }), { noNullPrototype: true })
const frame: fc.Arbitrary<Sent> = fc.oneof(
  json.map((value) => ({ json: value as Record<string, unknown> })),
  fc.record({ tag: fc.constantFrom(...Object.values(streamTags)), bytes: fc.uint8Array({ maxLength: 3_000 }) }),
)

const encode = (sent: Sent): Buffer => ("json" in sent ? encodeJson(sent.json) : encodeStream(sent.tag, sent.bytes))

/** Pushes bytes in the given pieces; what came out, copied, because a body may share memory with its chunk. */
function decode(chunks: readonly Buffer[]): { bodies: Buffer[]; decoder: FrameDecoder } {
  const decoder = new FrameDecoder()
  const bodies: Buffer[] = []
  for (const chunk of chunks) decoder.push(chunk, (body) => bodies.push(Buffer.from(body)))
  return { bodies, decoder }
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

function header(length: number, ...first: number[]): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return Buffer.concat([bytes, Buffer.from(first)])
}

function faultOf(work: () => unknown): string {
  try {
    work()
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown.code
    throw thrown
  }
  return "none"
}

describe("frames", () => {
  test("come out as they went in, however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 40 }), (sent, cuts) => {
        const { bodies, decoder } = decode(cutAt(Buffer.concat(sent.map(encode)), cuts))
        expect(bodies.length).toBe(sent.length)
        sent.forEach((one, index) => {
          const body = bodies[index] ?? Buffer.alloc(0)
          expect(isJson(body)).toBe("json" in one)
          if ("json" in one) expect(JSON.stringify(decodeJson(body))).toBe(JSON.stringify(one.json))
          else expect(body).toEqual(Buffer.from([one.tag, ...one.bytes]))
        })
        expect(decoder.pendingBytes).toBe(0)
      }),
    )
  })

  test("come out one byte at a time", () => {
    const sent = [encodeJson({ a: "ü" }), encodeStream(streamTags.stdout, Buffer.from("xyz")), encodeJson({})]
    const { bodies } = decode([...Buffer.concat(sent)].map((byte) => Buffer.from([byte])))
    expect(bodies).toEqual(sent.map((one) => one.subarray(4)))
  })

  test("that are cut off show how much is missing its end", () => {
    const whole = encodeJson({ a: 1 })
    const { bodies, decoder } = decode([whole, whole.subarray(0, 7)])
    expect(bodies.length).toBe(1)
    expect(decoder.pendingBytes).toBe(7)
  })

  test("of JSON may be as long as the limit and not one byte longer", () => {
    const atLimit = { a: "x".repeat(frameLimits.jsonBytesMax - '{"a":""}'.length) }
    const { bodies } = decode([encodeJson(atLimit)])
    expect(decodeJson(bodies[0] ?? Buffer.alloc(0))).toEqual(atLimit)
    expect(faultOf(() => encodeJson({ a: `${atLimit.a}x` }))).toBe("limit")
    expect(faultOf(() => decode([header(frameLimits.jsonBytesMax + 1)]))).toBe("limit")
  })

  test("the JSON limit counts bytes, not characters", () => {
    const text = "ü".repeat(frameLimits.jsonBytesMax / 2)
    expect(faultOf(() => encodeJson({ text }))).toBe("limit")
  })

  test("of a stream may be as long as the limit, its tag included, and not one byte longer", () => {
    const { bodies } = decode([encodeStream(streamTags.raw, Buffer.alloc(frameLimits.streamBytesMax - 1, 7))])
    expect(bodies[0]?.length).toBe(frameLimits.streamBytesMax)
    expect(faultOf(() => encodeStream(streamTags.raw, Buffer.alloc(frameLimits.streamBytesMax)))).toBe("limit")
    expect(faultOf(() => decode([header(frameLimits.streamBytesMax, streamTags.raw)]))).toBe("none")
    expect(faultOf(() => decode([header(frameLimits.streamBytesMax + 1, streamTags.raw)]))).toBe("limit")
  })

  test.each([
    ["no length", header(0), "invalid"],
    ["2^31", header(2 ** 31), "limit"],
    ["2^32 - 1", header(2 ** 32 - 1), "limit"],
    ["tag 0", header(5, 0), "invalid"],
    ["tag 5", header(5, 5), "invalid"],
    ["an array", header(5, 0x5b), "invalid"],
  ])("with a wrong beginning are refused before their body is here: %s", (_, bytes, code) => {
    expect(faultOf(() => decode([bytes]))).toBe(code)
    expect(faultOf(() => decode([...bytes].map((byte) => Buffer.from([byte]))))).toBe(code)
  })

  test("that are nonsense give a fault or frames, never another error, and never more bytes than came", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 10 }), (chunks) => {
        const decoder = new FrameDecoder()
        let bytes = 0
        const code = faultOf(() => {
          for (const chunk of chunks) decoder.push(Buffer.from(chunk), (body) => (bytes += body.length + 4))
        })
        expect(["none", "invalid", "limit"]).toContain(code)
        expect(bytes + (code === "none" ? decoder.pendingBytes : 0)).toBeLessThanOrEqual(
          chunks.flatMap((one) => [...one]).length,
        )
      }),
    )
  })

  test("a frame sent byte by byte is not kept as a million small buffers", () => {
    const decoder = new FrameDecoder()
    const length = 256 * 1024
    decoder.push(header(length, 0x7b), () => undefined)
    const before = keptBytes()
    for (let i = 2; i < length; i++) decoder.push(Buffer.from(new Uint8Array(1).buffer), () => undefined)
    expect(decoder.pendingBytes).toBe(length + 3)
    expect(keptBytes() - before).toBeLessThan(8 * length)
  })
})

describe("decodeJson", () => {
  const nested = (depth: number): Buffer => Buffer.from(`{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`)

  test("takes nesting up to the limit and not one level more", () => {
    expect(faultOf(() => decodeJson(nested(frameLimits.jsonDepthMax)))).toBe("none")
    expect(faultOf(() => decodeJson(nested(frameLimits.jsonDepthMax + 1)))).toBe("invalid")
  })

  test("does not count brackets inside strings", () => {
    const value = { a: `${"[{".repeat(100)}\\"${"[".repeat(100)}` }
    expect(decodeJson(Buffer.from(JSON.stringify(value)))).toEqual(value)
  })

  test("refuses a million brackets without choking on them", () => {
    expect(faultOf(() => decodeJson(Buffer.from(`{"a":${"[".repeat(frameLimits.jsonBytesMax - 5)}`)))).toBe("invalid")
  })

  test.each([
    ["not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["an overlong encoding", Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
    ["cut off", Buffer.from('{"a":')],
    ["only a brace", Buffer.from("{")],
    ["two values", Buffer.from("{}{}")],
    ["a trailing comma", Buffer.from('{"a":1,}')],
    ["NaN", Buffer.from('{"a":NaN}')],
    ["nothing", Buffer.alloc(0)],
    ["an array", Buffer.from("[1]")],
    ["null", Buffer.from("null")],
    ["a number", Buffer.from("5")],
  ])("refuses what is not an object: %s", (_, body) => {
    expect(faultOf(() => decodeJson(body))).toBe("invalid")
  })

  test("gives `__proto__` as a plain key and changes nobody's prototype", () => {
    const value = decodeJson(
      Buffer.from('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
    )
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined()
    expect(value["polluted"]).toBeUndefined()
  })

  test("any bytes after a brace give an object or `invalid`", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc.string().map((text) => Buffer.from(text)),
        ),
        (rest) => {
          expect(["none", "invalid"]).toContain(faultOf(() => decodeJson(Buffer.concat([Buffer.from("{"), rest]))))
        },
      ),
    )
  })
})
