import { connect as connectTls } from "node:tls"
import { Duplex } from "node:stream"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { serverNameOf } from "./client-hello.ts"
import { Denied } from "./denied.ts"

/** What OpenSSL really sends. */
function helloFor(servername: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write(chunk: Buffer) {
        resolve(chunk)
        wire.destroy()
      },
    })
    connectTls({ socket: wire, servername, rejectUnauthorized: false }).on("error", () => undefined)
  })
}

/** The same greeting, cut into records of `size`. */
function recut(hello: Buffer, size: number): Buffer {
  const body = hello.subarray(5)
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size)
    parts.push(Buffer.from([0x16, 3, 1, piece.length >> 8, piece.length & 255]), piece)
  }
  return Buffer.concat(parts)
}

const sized = (bytes: number, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(bytes)
  length.writeUIntBE(body.length, 0, bytes)
  return Buffer.concat([length, body])
}
const record = (body: Buffer, type = 0x16, version = 3): Buffer =>
  Buffer.concat([Buffer.from([type, version, 1]), sized(2, body)])
const nameExtension = (list: Buffer, ...behind: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([0, 0]), sized(2, sized(2, list), ...behind)])
const hostName = (name: string, type = 0): Buffer => Buffer.concat([Buffer.from([type]), sized(2, Buffer.from(name))])

/** The message in a greeting, with these parts behind the ways of packing. */
const message = (...behind: Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from([1]),
    sized(3, Buffer.alloc(2 + 32), sized(1), sized(2, Buffer.from([19, 1])), sized(1, Buffer.from([0])), ...behind),
  ])
const greeting = message(sized(2, nameExtension(hostName("a.test"))))

describe("the server name of a TLS greeting", async () => {
  const hello = await helloFor("example.com")

  test("is found, whole or cut at any byte", () => {
    expect(serverNameOf(hello)).toEqual({ name: "example.com" })
    for (let end = 0; end < hello.length; end++) expect(serverNameOf(hello.subarray(0, end))).toBeUndefined()
  })

  test("is found over several records, with more behind it", () => {
    expect(serverNameOf(recut(hello, 50))).toEqual({ name: "example.com" })
    expect(serverNameOf(recut(hello, 16))).toEqual({ name: "example.com" })
    expect(() => serverNameOf(recut(hello, 1))).toThrow(Denied)
  })

  test("may be missing", async () => {
    expect(serverNameOf(await helloFor(""))).toEqual({ name: undefined })
  })

  test("given twice, it is refused", () => {
    const name = Buffer.from("example.com")
    const at = hello.indexOf(name) - 9
    const extension = hello.subarray(at, at + 9 + name.length)
    const twice = Buffer.concat([hello.subarray(0, at), extension, hello.subarray(at)])
    for (const [place, size] of [
      [3, 2],
      [6, 3],
    ] as const) {
      twice.writeUIntBE(twice.readUIntBE(place, size) + extension.length, place, size)
    }
    const session = 5 + 4 + 34
    const ciphers = session + 1 + (twice[session] ?? 0)
    const lengths = ciphers + 2 + twice.readUInt16BE(ciphers) + 2
    twice.writeUInt16BE(twice.readUInt16BE(lengths) + extension.length, lengths)
    expect(() => serverNameOf(twice)).toThrow(Denied)
  })

  test("is read out of the smallest greeting; one that has no extensions has none", () => {
    expect(serverNameOf(record(greeting))).toEqual({ name: "a.test" })
    expect(serverNameOf(record(message()))).toEqual({ name: undefined })
  })

  const named = (...list: Buffer[]): Buffer => record(message(sized(2, nameExtension(Buffer.concat(list)))))
  test.each<[string, Buffer]>([
    ["another record's type", record(greeting, 0x17)],
    ["another version's record", record(greeting, 0x16, 2)],
    ["another record's type in the middle", Buffer.concat([record(greeting.subarray(0, 9)), record(greeting, 0x15)])],
    ["an empty record", Buffer.concat([record(greeting.subarray(0, 9)), record(Buffer.of())])],
    ["a record that is too long", record(message(sized(2, Buffer.from([0, 9]), sized(2, Buffer.alloc(17_000)))))],
    ["another message", record(Buffer.concat([Buffer.from([2]), greeting.subarray(1)]))],
    ["something behind the extensions", record(message(sized(2, nameExtension(hostName("a.test"))), Buffer.from([0])))],
    ["something behind the list", record(message(sized(2, nameExtension(hostName("a.test"), Buffer.from([0])))))],
    ["a second name", named(hostName("a.test"), hostName("b.test"))],
    ["a name of another kind", named(hostName("a.test", 1))],
    ["an empty name", named(hostName(""))],
    ["a name that goes on behind its end", named(hostName("a.test").subarray(0, -1))],
  ])("with %s it is refused", (_, bytes) => {
    expect(() => serverNameOf(bytes)).toThrow(Denied)
  })

  test("nonsense is refused or waits for more, and nothing else", () => {
    const spoiled = fc.tuple(fc.nat(hello.length - 1), fc.nat(255)).map(([at, value]) => {
      const copy = Buffer.from(hello)
      copy[at] = value
      return copy
    })
    const noise = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.concat([Buffer.from([0x16, 3, 1]), bytes]))
    fc.assert(
      fc.property(fc.oneof(spoiled, noise), (bytes) => {
        try {
          serverNameOf(bytes)
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(Denied)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
