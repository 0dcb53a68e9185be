import type { ConnectOpts, Socket } from "node:net"

const firstBytes = 64 * 1024
/** Larger than what Node reads at once, and used again instead of allocated anew: this doubles the throughput of a tunnel. */
const bufferBytes = 128 * 1024
const buffersMax = 4

type Read = (size: number, buffer: Uint8Array) => boolean

/**
 * Reads a connection to the outside. It is an ordinary stream at first (somebody looks at what it says); once poured, its bytes go
 * from a few buffers straight to the client, and reading stops while all of them wait for the client.
 */
class Intake {
  readonly onread: NonNullable<ConnectOpts["onread"]>
  #buffer: () => Uint8Array
  #read: Read

  constructor(socket: () => Socket) {
    const first = Buffer.allocUnsafeSlow(firstBytes)
    this.#buffer = () => first
    this.#read = (size, buffer) => socket().push(Buffer.from(buffer.subarray(0, size)))
    this.onread = { buffer: () => this.#buffer(), callback: (size, buffer) => this.#read(size, buffer) }
  }

  pour(from: Socket, to: Socket): void {
    const buffers: Buffer[] = []
    let reads = 0
    let waiting = 0
    this.#buffer = () => (buffers[reads % buffersMax] ??= Buffer.allocUnsafeSlow(bufferBytes))
    this.#read = (size, buffer) => {
      reads++
      waiting++
      // Writes are taken in order, so the buffer that comes free is the one that is next.
      to.write(buffer.subarray(0, size), () => {
        if (--waiting === buffersMax - 1) from.resume()
      })
      return waiting < buffersMax
    }
  }
}

const intakes = new WeakMap<Socket, Intake>()

/** What `connect` needs for a connection that can be poured. */
export function pourable(connect: (options: Pick<ConnectOpts, "onread">) => Socket): Socket {
  const intake = new Intake(() => socket)
  const socket = connect({ onread: intake.onread })
  intakes.set(socket, intake)
  return socket
}

/** Everything that `from` says goes to `to`, as fast as that takes it, and its end too. */
export function pour(from: Socket, to: Socket): void {
  const intake = intakes.get(from)
  if (!intake) return void from.pipe(to)
  const early = from.read() as Buffer | null
  if (early) to.write(early)
  from.once("end", () => to.end())
  if (from.readableEnded) to.end()
  intake.pour(from, to)
  from.resume()
}
