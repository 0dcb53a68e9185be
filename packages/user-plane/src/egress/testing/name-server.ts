import { createSocket, type Socket } from "node:dgram"
import { once } from "node:events"

const types = { a: 1, aaaa: 28 } as const
const codes = { answered: 0, failed: 2, absent: 3 } as const

type Known = readonly number[] | "failed" | "silent"

/** What is known of a name: an address as bytes, or how it cannot be looked up. */
export type Zone = Readonly<Record<string, { a?: Known; aaaa?: Known }>>

/** Answers about the names it knows, over UDP on this machine; the others do not exist. */
export class NameServer implements AsyncDisposable {
  readonly #socket: Socket
  /** How often each name was asked for. */
  readonly asked = new Map<string, number>()

  private constructor(socket: Socket) {
    this.#socket = socket
  }

  static async start(zone: Zone): Promise<NameServer> {
    const socket = createSocket("udp4")
    const server = new NameServer(socket)
    socket.on("message", (query, { port }) => {
      const answer = server.#answer(query, zone)
      if (answer) socket.send(answer, port, "127.0.0.1")
    })
    socket.bind(0, "127.0.0.1")
    await once(socket, "listening")
    return server
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((done) => this.#socket.close(done))
  }

  #answer(query: Buffer, zone: Zone): Buffer | undefined {
    const { name, end } = nameIn(query)
    this.asked.set(name, (this.asked.get(name) ?? 0) + 1)
    const question = query.subarray(headBytes, end + 4)
    const refusal = (code: number): Buffer => Buffer.concat([head(query, code, 0), question])
    const host = zone[name]
    if (!host) return refusal(codes.absent)
    const known = query.readUInt16BE(end) === types.a ? host.a : host.aaaa
    if (known === "silent") return undefined
    if (known === "failed") return refusal(codes.failed)
    if (!known) return refusal(codes.answered)
    return Buffer.concat([head(query, codes.answered, 1), question, record(known)])
  }
}

const headBytes = 12

function nameIn(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = headBytes
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join("."), end: at + 1 }
}

/** The query's own number and question, answered. */
function head(query: Buffer, code: number, answers: number): Buffer {
  const bytes = Buffer.alloc(headBytes)
  query.copy(bytes, 0, 0, 2)
  bytes.writeUInt16BE(0x8180 | code, 2)
  bytes.writeUInt16BE(1, 4)
  bytes.writeUInt16BE(answers, 6)
  return bytes
}

/** The address of the name that was asked for, by a pointer to it. */
function record(address: readonly number[]): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt16BE(0xc000 | headBytes, 0)
  bytes.writeUInt16BE(address.length === 4 ? types.a : types.aaaa, 2)
  bytes.writeUInt16BE(1, 4)
  bytes.writeUInt32BE(60, 6)
  bytes.writeUInt16BE(address.length, 10)
  return Buffer.concat([bytes, Buffer.from(address)])
}
