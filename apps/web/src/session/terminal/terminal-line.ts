import { Fault } from "@warren/base/fault.ts"
import { backoffMs, pause } from "@warren/sdk/pause.ts"
import { isPiece } from "@warren/sdk/run-events.ts"
import { Talk } from "@warren/sdk/talk.ts"
import type { Terminal } from "@xterm/xterm"
import { http } from "../../data/api.ts"
import { noteFound, noteLost } from "../../data/connection.ts"

const route = "GET /v1/sessions/{session}/terminals/{name}/attach"

interface LineParts {
  readonly session: string
  readonly name: string
  readonly terminal: Terminal
  /** Something to say to whoever looks: it ended, or cannot be. */
  say(text: string): void
  /** What ran in it has ended; with it, that is not said. */
  ended?: ((exitCode: number | null) => void) | undefined
}

/**
 * Between a terminal on the page and the one in the sandbox. A line that breaks is drawn again and goes on at the byte it had, so what
 * was shown meanwhile is there, and nothing is there twice.
 */
export class TerminalLine implements Disposable {
  readonly #parts: LineParts
  readonly #over = new AbortController()
  #talk: Talk<typeof route> | undefined
  /** The number of the next byte; undefined before anything has come. */
  #next: number | undefined
  #exitCode: number | null = null
  /** Another viewer's size was taken over: it is not told as ours. */
  #isFollowing = false

  constructor(parts: LineParts) {
    this.#parts = parts
    const { terminal } = parts
    terminal.onData((keys) => void this.#talk?.write(new TextEncoder().encode(keys)).catch(() => undefined))
    terminal.onBinary(
      (keys) => void this.#talk?.write(Uint8Array.from(keys, (key) => key.charCodeAt(0))).catch(() => undefined),
    )
    terminal.onResize(({ cols, rows }) => {
      if (!this.#isFollowing) void this.#talk?.send({ op: "resize", cols, rows }).catch(() => undefined)
    })
    void this.#keep()
  }

  [Symbol.dispose](): void {
    this.#over.abort()
    noteFound(this.#name)
    void this.#talk?.[Symbol.asyncDispose]()
  }

  get #name(): string {
    return `terminal ${this.#parts.session} ${this.#parts.name}`
  }

  async #keep(): Promise<void> {
    const { signal } = this.#over
    for (let tries = 0; !signal.aborted;) {
      const fault = await this.#read(() => (tries = 0)).catch((thrown: unknown) => Fault.from(thrown))
      if (signal.aborted) return
      const { say, ended = () => say("It ended.") } = this.#parts
      if (fault === undefined) return ended(this.#exitCode)
      if (fault.code !== "unavailable")
        return this.#parts.say(`${fault.message}${fault.hint ? ` – ${fault.hint}` : ""}`)
      noteLost(this.#name, fault)
      await pause(backoffMs(++tries), signal).catch(() => undefined)
    }
  }

  async #read(arrived: () => void): Promise<undefined> {
    const { session, name, terminal } = this.#parts
    const { cols, rows } = terminal
    const talk = new Talk(http, route, {
      session,
      name,
      cols,
      rows,
      ...(this.#next === undefined ? {} : { after: this.#next }),
    })
    this.#talk = talk
    for (let item = await talk.next(); item !== undefined; item = await talk.next()) {
      if (isPiece(item)) {
        this.#next = (this.#next ?? 0) + item.bytes.length
        terminal.write(item.bytes)
      } else if (item.ev === "exit") {
        this.#exitCode = item.exitCode
        return
      } else if (item.ev === "attached") {
        arrived()
        noteFound(this.#name)
        // What is not kept any more cannot be shown: what is, is shown from a clean screen.
        if (this.#next === undefined || item.from !== this.#next) terminal.reset()
        this.#next = item.from
      } else if (item.ev === "resized") this.#follow(item.cols, item.rows)
      else this.#next = (this.#next ?? 0) + item.dropped
    }
  }

  #follow(cols: number, rows: number): void {
    this.#isFollowing = true
    this.#parts.terminal.resize(cols, rows)
    this.#isFollowing = false
  }
}
