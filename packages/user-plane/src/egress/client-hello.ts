import { Denied } from "./denied.ts"

export const handshakeRecord = 0x16
const clientHello = 1
const serverNameExtension = 0
const hostNameType = 0
const recordBytesMax = 16_384
/** Nobody cuts a greeting into more, except to make it hard to read. */
const recordsMax = 32

/**
 * The server name in a TLS ClientHello: undefined while more bytes are needed, `{ name: undefined }` when it has none. Follows the
 * greeting over as many records as it is cut into, and refuses what two readers could understand in two ways.
 */
export function serverNameOf(bytes: Buffer): { readonly name: string | undefined } | undefined {
  const message = handshakeOf(bytes)
  if (!message) return undefined
  const hello = new Reader(message)
  hello.skip(2 + 32)
  hello.skip(hello.number(1))
  hello.skip(hello.number(2))
  hello.skip(hello.number(1))
  if (hello.left === 0) return { name: undefined }
  const extensions = new Reader(hello.take(hello.number(2)))
  if (hello.left !== 0) throw badHello()
  let names: Buffer | undefined
  while (extensions.left > 0) {
    const type = extensions.number(2)
    const body = extensions.take(extensions.number(2))
    if (type !== serverNameExtension) continue
    if (names) throw badHello()
    names = body
  }
  return { name: names && nameIn(names) }
}

/** The ClientHello's body, out of the records that carry it. */
function handshakeOf(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; at + 5 <= bytes.length;) {
    const length = bytes.readUInt16BE(at + 3)
    const isRecord = bytes[at] === handshakeRecord && bytes[at + 1] === 3 && length > 0 && length <= recordBytesMax
    if (!isRecord || parts.length === recordsMax) throw badHello()
    parts.push(bytes.subarray(at + 5, at + 5 + length))
    at += 5 + length
  }
  const message = Buffer.concat(parts)
  if (message.length > 0 && message[0] !== clientHello) throw badHello()
  if (message.length < 4) return undefined
  const end = 4 + message.readUIntBE(1, 3)
  return message.length < end ? undefined : message.subarray(4, end)
}

function nameIn(extension: Buffer): string {
  const reader = new Reader(extension)
  const list = new Reader(reader.take(reader.number(2)))
  if (reader.left !== 0 || list.number(1) !== hostNameType) throw badHello()
  const name = list.take(list.number(2))
  if (list.left !== 0 || name.length === 0) throw badHello()
  return name.toString("latin1")
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  number(size: number): number {
    return this.take(size).readUIntBE(0, size)
  }

  take(size: number): Buffer {
    if (size > this.left) throw badHello()
    this.#at += size
    return this.#bytes.subarray(this.#at - size, this.#at)
  }

  skip(size: number): void {
    this.take(size)
  }
}

function badHello(): Denied {
  return new Denied("bad-hello", "the TLS greeting cannot be read")
}
