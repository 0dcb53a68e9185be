import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { decodeJson, encodeJson, isJson } from "@warren/base/frame.ts"
import type { View } from "./view.ts"

const headerBytes = 4
type Done = (failure?: Error | null) => void

/** A connection to init whose first frame, the request, is translated on its way. Everything after it passes as it is. */
export class Translated extends Duplex {
  readonly #socket: Socket
  readonly #view: View
  /** What has come of the first frame; undefined once it is sent. */
  #first: Buffer | undefined = Buffer.alloc(0)

  constructor(socket: Socket, view: View) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.#view = view
    socket.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) socket.pause()
    })
    socket.once("end", () => this.push(null))
    socket.once("error", (failure) => this.destroy(failure))
    socket.once("close", () => this.destroy())
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: Done): void {
    try {
      const ready = this.#first === undefined ? bytes : this.#translate(Buffer.concat([this.#first, bytes]))
      if (ready) this.#socket.write(ready, done)
      else done()
    } catch (failure) {
      done(failure instanceof Error ? failure : new Error(String(failure)))
    }
  }

  override _final(done: Done): void {
    this.#socket.end(() => done())
  }

  override _destroy(failure: Error | null, done: Done): void {
    this.#socket.destroy()
    done(failure)
  }

  /** Undefined while the frame is not whole. */
  #translate(bytes: Buffer): Buffer | undefined {
    const end = bytes.length < headerBytes ? Number.POSITIVE_INFINITY : headerBytes + bytes.readUInt32BE(0)
    this.#first = bytes
    if (bytes.length < end) return undefined
    this.#first = undefined
    const body = bytes.subarray(headerBytes, end)
    // init says itself what is wrong with a first frame that is no request.
    if (!isJson(body)) return bytes
    return Buffer.concat([encodeJson(this.#view.request(decodeJson(body))), bytes.subarray(end)])
  }
}
