import type { ReadStream } from "node:tty"

interface Taker {
  write(bytes: Uint8Array): Promise<void>
  send(message: { op: "eof" }): void
}

/** Carries this process's standard input to a program, as fast as the program takes it, until it is disposed. */
export class Feeding implements Disposable {
  readonly #stdin: ReadStream
  readonly #taker: Taker
  #isOver = false

  constructor(stdin: ReadStream, taker: Taker) {
    this.#stdin = stdin
    this.#taker = taker
    stdin.on("data", this.#data)
    stdin.on("end", this.#end)
    stdin.on("error", this.#end)
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#stdin.off("data", this.#data)
    this.#stdin.off("end", this.#end)
    this.#stdin.pause()
  }

  readonly #data = (chunk: Buffer): void => {
    this.#stdin.pause()
    // A connection that broke is told to whoever reads from it.
    this.#taker.write(chunk).then(
      () => void (this.#isOver || this.#stdin.resume()),
      () => undefined,
    )
  }

  /** An input that cannot be read (a folder, a terminal that is gone) has ended. */
  readonly #end = (): void => {
    if (!this.#isOver) this.#taker.send({ op: "eof" })
    this.#isOver = true
  }
}
