import type { WriteStream } from "node:tty"
import { plain } from "./plain.ts"

const firstMs = 150
const everyMs = 80

/** One line that changes, on a terminal; nothing anywhere else, and nothing for what is over at once. */
export class Progress implements Disposable {
  readonly #stream: WriteStream
  readonly #isShown: boolean
  #text = ""
  #timer: NodeJS.Timeout | undefined
  #isDrawn = false

  constructor(stream: WriteStream, isShown: boolean) {
    this.#stream = stream
    this.#isShown = isShown
  }

  say(text: string): void {
    this.#text = text
    if (!this.#isShown || this.#timer) return
    this.#timer = setTimeout(() => this.#draw(), this.#isDrawn ? everyMs : firstMs)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    if (this.#isDrawn) this.#stream.write("\r\u001b[K")
    this.#isDrawn = false
  }

  #draw(): void {
    this.#timer = undefined
    this.#isDrawn = true
    this.#stream.write(`\r\u001b[K${plain(this.#text).slice(0, (this.#stream.columns || 80) - 1)}`)
  }
}
