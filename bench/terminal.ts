import { once } from "node:events"
import { streamTags } from "@warren/base/frame.ts"
import { WebSocket } from "ws"

/** Says back each byte, as a program does that has the terminal to itself. */
const program = "stty raw -echo; printf ready; exec cat"

/** A terminal in a session as the page has it: over the API's WebSocket, through control plane, runner and init. */
export class Terminal {
  readonly #socket: WebSocket
  #heard: (bytes: Buffer) => void = () => undefined
  /** The last message that was no output. */
  #told = ""

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (message: Buffer, isBinary: boolean) => {
      if (isBinary) this.#heard(message.subarray(1))
      else this.#told = message.toString()
    })
  }

  static async open(url: string, token: string): Promise<Terminal> {
    const headers = { authorization: `Bearer ${token}` }
    const socket = new WebSocket(url, { headers, perMessageDeflate: false })
    const terminal = new Terminal(socket)
    await once(socket, "open")
    const ready = terminal.#until("ready")
    socket.send(JSON.stringify({ cmd: program, cols: 80, rows: 24 }))
    await Promise.race([
      ready,
      once(socket, "close").then(() => Promise.reject(new Error(`it was closed: ${terminal.#told}`))),
    ])
    return terminal
  }

  /** From a keystroke to its echo, in milliseconds. */
  async echo(): Promise<number> {
    const begun = performance.now()
    const echoed = this.#until("x")
    this.#socket.send(Buffer.from([streamTags.stdin, 0x78]))
    await echoed
    return performance.now() - begun
  }

  #until(wanted: string): Promise<void> {
    let said = ""
    return new Promise((resolve) => {
      this.#heard = (bytes) => {
        said += bytes.toString()
        if (said.includes(wanted)) resolve()
      }
    })
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, "close")
    this.#socket.terminate()
    await closed
  }
}

export function terminalUrl(port: number, session: string, name: string): string {
  return `ws://127.0.0.1:${port}/v1/sessions/${session}/terminals/${name}/attach`
}
