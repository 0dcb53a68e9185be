import { Fault } from "@warren/base/fault.ts"
import { commandOf, type Command } from "./exec.ts"
import type { Http, Waiting } from "./http.ts"
import type { Piece } from "./output.ts"
import type { Rest } from "./routes.ts"
import { isPiece, type End } from "./run-events.ts"
import { Talk } from "./talk.ts"

const route = "POST /v1/sessions/{session}/exec"

export interface TerminalOptions
  extends Waiting, Partial<Rest<typeof route, "session" | "cmd" | "argv" | "stdin" | "pty">> {
  /** A login shell unless given. */
  readonly command?: Command
  readonly cols?: number
  readonly rows?: number
}

/** A program on a terminal, over a WebSocket. Disposing it ends the program. */
export class Terminal implements AsyncDisposable {
  readonly #talk: Talk<typeof route>
  #end: End | undefined

  constructor(http: Http, session: string, options: TerminalOptions = {}) {
    const { command = ["/bin/sh", "-l"], cols = 80, rows = 24, signal, ...wishes } = options
    const input = { session, ...wishes, ...commandOf(command), stdin: true, pty: { cols, rows } }
    this.#talk = new Talk(http, route, input, { signal })
  }

  /** What it shows, until it ends. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Piece, void, void> {
    for (let item = await this.#talk.next(); item !== undefined; item = await this.#talk.next()) {
      if (isPiece(item)) yield item
      else if (item.ev === "exit") this.#end = item
    }
  }

  /** Keys, as a terminal sends them. */
  write(keys: string | Uint8Array): Promise<void> {
    return this.#talk.write(typeof keys === "string" ? new TextEncoder().encode(keys) : keys)
  }

  resize(cols: number, rows: number): Promise<void> {
    return this.#talk.send({ op: "resize", cols, rows })
  }

  signal(name: string): Promise<void> {
    return this.#talk.send({ op: "signal", name })
  }

  /** How it ended; what it still shows is left out. */
  async wait(): Promise<End> {
    for await (const _ of this);
    if (!this.#end) throw new Fault("unavailable", "it is not known how it ended")
    return this.#end
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#talk[Symbol.asyncDispose]()
  }
}
