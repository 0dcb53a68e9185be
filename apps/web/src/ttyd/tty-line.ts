import type { Terminal } from "@xterm/xterm"

/** The first byte of each message, as ttyd and its clients know them. */
const up = { input: "0", resize: "1", pause: "2", resume: "3" } as const
const down = { output: 48, title: 49 } as const

/** Characters that the terminal has not drawn yet: above the first the sender is asked to wait, below the second to go on. */
const backlog = { most: 512 * 1024, least: 64 * 1024 } as const
/** How a socket ends when the one at the other end meant it. */
const meant = 1000

/** Between a terminal on the page and one in a sandbox, in ttyd's words. */
export class TtyLine {
  readonly #terminal: Terminal
  readonly #say: (text: string | undefined) => void
  #socket: WebSocket | undefined
  #undrawn = 0
  #isHeld = false

  constructor(terminal: Terminal, say: (text: string | undefined) => void) {
    this.#terminal = terminal
    this.#say = say
    terminal.onData((keys) => this.#tell(up.input + keys))
    terminal.onBinary((keys) => this.#tell(Uint8Array.from(up.input + keys, (key) => key.charCodeAt(0))))
    terminal.onResize(({ cols, rows }) => this.#tell(up.resize + JSON.stringify({ columns: cols, rows })))
    this.#open()
  }

  /** Draws the line again, if it is not there. */
  again(): void {
    if (this.#socket === undefined) this.#open()
  }

  #open(): void {
    const address = new URL(`ws${location.search}`, location.href)
    address.protocol = location.protocol.replace("http", "ws")
    const socket = new WebSocket(address, ["tty"])
    socket.binaryType = "arraybuffer"
    this.#socket = socket
    this.#undrawn = 0
    this.#isHeld = false
    socket.addEventListener("open", () => {
      const { cols, rows } = this.#terminal
      this.#say(undefined)
      // What is kept of its output comes again, from the beginning.
      this.#terminal.reset()
      this.#tell(JSON.stringify({ AuthToken: "", columns: cols, rows }))
    })
    socket.addEventListener("message", ({ data }) => this.#hear(new Uint8Array(data as ArrayBuffer)))
    socket.addEventListener("close", ({ code, reason }) => {
      this.#socket = undefined
      const what = code === meant && reason !== "" ? `It ${reason}.` : "The terminal is not connected."
      this.#say(`${what} Press Enter to open it again; if that does not help, open it anew from Warren's page.`)
    })
  }

  #hear(message: Uint8Array): void {
    const [kind] = message
    const rest = message.subarray(1)
    if (kind === down.title) document.title = new TextDecoder().decode(rest)
    if (kind !== down.output) return
    this.#undrawn += rest.length
    if (this.#undrawn > backlog.most) this.#hold(true)
    this.#terminal.write(rest, () => {
      this.#undrawn -= rest.length
      if (this.#undrawn < backlog.least) this.#hold(false)
    })
  }

  #hold(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return
    this.#isHeld = isHeld
    this.#tell(isHeld ? up.pause : up.resume)
  }

  #tell(message: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(message)
  }
}
