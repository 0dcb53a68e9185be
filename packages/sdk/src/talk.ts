import { Fault } from "@warren/base/fault.ts"
import { openSocket } from "#web-socket"
import { toFault, type Http, type Waiting } from "./http.ts"
import { Pieces, type OutputName, type Piece } from "./output.ts"
import { pause } from "./pause.ts"
import { placed, type Input, type Message, type StreamRoute } from "./routes.ts"

const stdinTag = 1
const names: Readonly<Record<number, OutputName>> = { 2: "stdout", 3: "stderr", 4: "pty" }
/** What may wait in the socket before a writer is held back. */
const waitingBytesMax = 1024 * 1024
/** What may wait to be read before the other side is held back. */
const unreadMax = 4 * 1024 * 1024
const pieceBytesMax = 128 * 1024
const lookAgainMs = 5

type Said = { readonly item: unknown; readonly size: number } | { readonly over: Fault | undefined }

/** A stream on a WebSocket: bytes and messages both ways. Closing it ends what it was about. */
export class Talk<R extends StreamRoute> implements AsyncDisposable {
  readonly #socket: ReturnType<typeof openSocket>
  readonly #pieces = new Pieces()
  readonly #said: Said[] = []
  readonly #opened: Promise<void>
  #wake: (() => void) | undefined
  #isOver = false
  #unread = 0

  constructor(http: Http, route: R, input: Input<R>, { signal }: Waiting = {}) {
    signal?.throwIfAborted()
    const { path, rest } = placed(route, input)
    const { url, headers } = http.socket(path)
    this.#socket = openSocket(url, headers)
    this.#socket.binaryType = "arraybuffer"
    this.#opened = this.#listen(JSON.stringify(rest))
    this.#opened.catch(() => undefined)
    signal?.addEventListener("abort", () => this.#end(signal.reason as Fault), { once: true })
  }

  /** The next piece or message; undefined when it is over. */
  async next(): Promise<Piece | Message<R> | undefined> {
    for (;;) {
      const said = this.#said.shift()
      if (said && "item" in said) return this.#read(said.item as Piece | Message<R>, said.size)
      if (said?.over) throw said.over
      if (said || this.#isOver) return undefined
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async send(message: object): Promise<void> {
    await this.#opened
    this.#socket.send(JSON.stringify(message))
  }

  /** Waits while the other side does not take more. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#opened
    for (let at = 0; at < bytes.length; at += pieceBytesMax) {
      const piece = bytes.subarray(at, at + pieceBytesMax)
      const framed = new Uint8Array(piece.length + 1)
      framed[0] = stdinTag
      framed.set(piece, 1)
      this.#socket.send(framed)
      // A WebSocket does not say when there is room again.
      while (!this.#isOver && this.#socket.bufferedAmount > waitingBytesMax) await pause(lookAgainMs, undefined)
      if (this.#isOver) return
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#end(undefined)
    return Promise.resolve()
  }

  #listen(input: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const on = (type: string, listen: (event: never) => void): void => this.#socket.addEventListener(type, listen)
      on("open", () => {
        this.#socket.send(input)
        resolve()
      })
      on("message", ({ data }: { data: string | ArrayBuffer }) => this.#receive(data))
      on("error", () => undefined)
      on("close", ({ code }: { code: number }) => {
        const lost = new Fault("unavailable", "the connection was lost")
        reject(lost)
        this.#end(code === 1000 ? undefined : lost)
      })
    })
  }

  #receive(data: string | ArrayBuffer): void {
    const size = typeof data === "string" ? data.length : data.byteLength
    const item = typeof data === "string" ? this.#message(data) : this.#piece(new Uint8Array(data))
    if (item === undefined || this.#isOver) return
    this.#unread += size
    if (this.#unread > unreadMax) this.#socket.pause?.()
    this.#say({ item, size })
  }

  #message(text: string): object | undefined {
    const message = JSON.parse(text) as Record<string, unknown>
    if (!("fault" in message)) return message
    this.#end(toFault(message["fault"] as Record<string, unknown>))
    return undefined
  }

  #piece(bytes: Uint8Array<ArrayBuffer>): Piece | undefined {
    const from = names[bytes[0] ?? 0]
    return from && this.#pieces.of(from, bytes.subarray(1))
  }

  #read<T>(item: T, size: number): T {
    this.#unread -= size
    if (this.#unread <= unreadMax / 2) this.#socket.resume?.()
    return item
  }

  #say(said: Said): void {
    if (this.#isOver) return
    this.#said.push(said)
    this.#wake?.()
  }

  #end(fault: Fault | undefined): void {
    if (this.#isOver) return
    this.#say({ over: fault })
    this.#isOver = true
    this.#socket.close()
  }
}
