import { collect, type ExecOptions, type ExecResult } from "./exec.ts"
import type { Http, Waiting } from "./http.ts"
import { runEvents, type End } from "./run-events.ts"

type ShellEnd = End & { readonly cwd: string; readonly isNew: boolean }

/** What a command in a shell did. Both outputs are one, as on a terminal: `stdout`. */
export type ShellResult = ExecResult & {
  /** Where the shell is now. */
  readonly cwd: string
  /** The shell had ended and this is a new one. */
  readonly isNew: boolean
}

export type ShellRunOptions = Pick<ExecOptions, "signal" | "timeoutMs" | "outputBytesMax" | "onStdout" | "onStderr">

/** A shell that lives between commands: folder, variables, functions and jobs stay. Disposing it ends it. */
export class Shell implements AsyncDisposable {
  readonly id: string
  readonly #http: Http
  readonly #session: string
  #isClosed = false

  constructor(http: Http, session: string, id: string) {
    this.id = id
    this.#http = http
    this.#session = session
  }

  run(cmd: string, options: ShellRunOptions = {}): Promise<ShellResult> {
    const { signal, onStdout, onStderr, ...wishes } = options
    const input = { session: this.#session, shell: this.id, cmd, ...wishes }
    const events = runEvents(this.#http, "POST /v1/sessions/{session}/shells/{shell}/run", input, { signal })
    return collect<ShellEnd>(events, { onStdout, onStderr })
  }

  async close(waiting: Waiting = {}): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const which = { session: this.#session, shell: this.id }
    await this.#http.call("DELETE /v1/sessions/{session}/shells/{shell}", which, waiting)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
