import { Fault } from "@warren/base/fault.ts"
import { commandOf, type Command } from "./exec.ts"
import type { Http, Waiting } from "./http.ts"
import type { Piece } from "./output.ts"
import { backoffMs, pause } from "./pause.ts"
import type { Output, Rest } from "./routes.ts"
import { isPiece, runEvents, type End } from "./run-events.ts"

const spawnRoute = "POST /v1/sessions/{session}/processes"
const attachRoute = "GET /v1/sessions/{session}/processes/{pid}/attach"

export type SpawnOptions = Waiting & Partial<Rest<typeof spawnRoute, "session" | "cmd" | "argv">>

/** Output that was not kept for somebody who read too slowly, or came too late. */
export interface Dropped {
  readonly dropped: number
}

export async function spawn(
  http: Http,
  session: string,
  command: Command,
  options: SpawnOptions = {},
): Promise<Process> {
  const { signal, ...wishes } = options
  const { pid } = await http.make(spawnRoute, { session, ...wishes, ...commandOf(command) }, { signal })
  return new Process(http, session, pid)
}

/** A program that goes on by itself, whoever watches. */
export class Process {
  readonly pid: number
  readonly #http: Http
  readonly #session: string

  constructor(http: Http, session: string, pid: number) {
    this.pid = pid
    this.#http = http
    this.#session = session
  }

  /**
   * What it has said from byte `after` on, then what it says, until it ends. When the connection is lost it goes on at the
   * byte it had. Leaving does not end the program.
   */
  async *output(options: Waiting & { after?: number } = {}): AsyncGenerator<Piece | Dropped, End, void> {
    const { signal } = options
    let after = options.after ?? 0
    for (let tries = 0; ;) {
      try {
        for await (const item of runEvents(this.#http, attachRoute, { ...this.#which, after }, { signal })) {
          tries = 0
          if (isPiece(item)) {
            after += item.bytes.length
            yield item
          } else if (item.ev === "exit") return endOf(item)
          else if (item.ev === "attached" || item.ev === "resync") {
            after = item.ev === "attached" ? item.from : after + item.dropped
            if (item.dropped > 0) yield { dropped: item.dropped }
          }
        }
        throw new Fault("unavailable", "it is not known how it ended")
      } catch (thrown) {
        signal?.throwIfAborted()
        if (!(thrown instanceof Fault) || thrown.code !== "unavailable") throw thrown
        await pause(backoffMs(++tries), signal)
      }
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<Piece | Dropped, End, void> {
    return this.output()
  }

  /** How it ended, once it has. */
  async wait(waiting: Waiting = {}): Promise<End> {
    const output = this.output(waiting)
    for (;;) {
      const { done, value } = await output.next()
      if (done) return value
    }
  }

  /** Text for its standard input, if it was started with `stdin: true`; `isLast` closes it. */
  async write(text: string, { isLast = false, signal }: Waiting & { isLast?: boolean } = {}): Promise<void> {
    await this.#http.call(
      "POST /v1/sessions/{session}/processes/{pid}/stdin",
      { ...this.#which, text, isLast },
      { signal },
    )
  }

  /** False when it had ended already. */
  async kill(signalName = "SIGTERM", waiting: Waiting = {}): Promise<boolean> {
    const input = { ...this.#which, signal: signalName }
    const { wasRunning } = await this.#http.call("POST /v1/sessions/{session}/processes/{pid}/kill", input, waiting)
    return wasRunning
  }

  status(waiting: Waiting = {}): Promise<Output<"GET /v1/sessions/{session}/processes/{pid}">> {
    return this.#http.call("GET /v1/sessions/{session}/processes/{pid}", this.#which, waiting)
  }

  get #which(): { session: string; pid: number } {
    return { session: this.#session, pid: this.pid }
  }
}

function endOf({ ev: _, ...end }: End & { ev: string }): End {
  return end
}
