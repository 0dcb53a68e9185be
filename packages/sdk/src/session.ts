import { exec, type Command, type ExecOptions, type ExecResult } from "./exec.ts"
import { Files } from "./files.ts"
import type { Http, Waiting } from "./http.ts"
import { pages } from "./pages.ts"
import { Port } from "./port.ts"
import { Process, spawn, type SpawnOptions } from "./process.ts"
import type { CallRoute, Input, Output, Rest } from "./routes.ts"
import { Shell } from "./shell.ts"
import { Terminal, type TerminalOptions } from "./terminal.ts"

export type SessionInfo = Output<"GET /v1/sessions/{id}">
export type Snapshot = Output<"POST /v1/sessions/{session}/snapshots">

type Verb = "pause" | "resume" | "hibernate" | "restore" | "stop"
type Update = Waiting & Rest<"PATCH /v1/sessions/{id}", "id">

/** One session. With `await using` it is deleted at the end of the block, unless it is kept. */
export class Session implements AsyncDisposable {
  readonly id: string
  readonly files: Files
  /** As last told: `refresh` asks again. */
  info: SessionInfo
  readonly #http: Http
  #isKept: boolean
  #isDeleted = false

  constructor(http: Http, info: SessionInfo, isKept: boolean) {
    this.id = info.id
    this.files = new Files(http, info.id)
    this.info = info
    this.#http = http
    this.#isKept = isKept
  }

  get name(): string {
    return this.info.name
  }

  get state(): SessionInfo["state"] {
    return this.info.state
  }

  /** It stays when this object goes. */
  keep(): this {
    this.#isKept = true
    return this
  }

  refresh(waiting: Waiting = {}): Promise<this> {
    return this.#renew("GET /v1/sessions/{id}", { id: this.id }, waiting)
  }

  /** Runs a program to its end: a line for the shell, or words. Aborting ends it. */
  exec(command: Command, options?: ExecOptions): Promise<ExecResult> {
    return exec(this.#http, this.id, command, options)
  }

  /** Starts a program that goes on by itself. */
  spawn(command: Command, options?: SpawnOptions): Promise<Process> {
    return spawn(this.#http, this.id, command, options)
  }

  /** One that was started before, by its pid. */
  process(pid: number): Process {
    return new Process(this.#http, this.id, pid)
  }

  async processes(waiting: Waiting = {}): Promise<Output<"GET /v1/sessions/{session}/processes">["processes"]> {
    return (await this.#http.call("GET /v1/sessions/{session}/processes", { session: this.id }, waiting)).processes
  }

  /** A shell that lives between commands. */
  async shell(options: Waiting & Partial<Rest<"POST /v1/sessions/{session}/shells", "session">> = {}): Promise<Shell> {
    const { signal, ...wishes } = options
    const route = "POST /v1/sessions/{session}/shells"
    const { shell } = await this.#http.make(route, { session: this.id, ...wishes }, { signal })
    return new Shell(this.#http, this.id, shell)
  }

  /** A program on a terminal. */
  terminal(options?: TerminalOptions): Terminal {
    return new Terminal(this.#http, this.id, options)
  }

  /** A connection to what listens on a port inside. */
  connect(port: number, waiting?: Waiting): Port {
    return new Port(this.#http, this.id, port, waiting)
  }

  /** New sessions with the files this one has now. Each is deleted when it is disposed, unless kept. */
  async fork(count = 1, options: Waiting & { name?: string } = {}): Promise<Session[]> {
    const { signal, ...wishes } = options
    const { sessions } = await this.#http.make(
      "POST /v1/sessions/{id}/fork",
      { id: this.id, count, ...wishes },
      { signal },
    )
    return sessions.map((info) => new Session(this.#http, info, false))
  }

  snapshot({ signal, ...wishes }: Waiting & { name?: string } = {}): Promise<Snapshot> {
    return this.#http.make("POST /v1/sessions/{session}/snapshots", { session: this.id, ...wishes }, { signal })
  }

  snapshots(waiting: Waiting = {}): AsyncGenerator<Snapshot, void, void> {
    return pages(this.#http, "GET /v1/snapshots", { session: this.id }, waiting)
  }

  /** Its files as they were in a snapshot; its programs end. */
  rollback(snapshot: string | Snapshot, waiting: Waiting = {}): Promise<this> {
    const named = typeof snapshot === "string" ? snapshot : snapshot.id
    return this.#renew("POST /v1/sessions/{id}/rollback", { id: this.id, snapshot: named }, waiting)
  }

  pause(waiting?: Waiting): Promise<this> {
    return this.#do("pause", waiting)
  }

  resume(waiting?: Waiting): Promise<this> {
    return this.#do("resume", waiting)
  }

  hibernate(waiting?: Waiting): Promise<this> {
    return this.#do("hibernate", waiting)
  }

  restore(waiting?: Waiting): Promise<this> {
    return this.#do("restore", waiting)
  }

  stop(waiting?: Waiting): Promise<this> {
    return this.#do("stop", waiting)
  }

  update({ signal, ...wishes }: Update): Promise<this> {
    return this.#renew("PATCH /v1/sessions/{id}", { id: this.id, ...wishes }, { signal })
  }

  stats(waiting: Waiting = {}): Promise<Output<"GET /v1/sessions/{id}/stats">> {
    return this.#http.call("GET /v1/sessions/{id}/stats", { id: this.id }, waiting)
  }

  posture(waiting: Waiting = {}): Promise<Output<"GET /v1/sessions/{id}/posture">> {
    return this.#http.call("GET /v1/sessions/{id}/posture", { id: this.id }, waiting)
  }

  async denials({ signal, ...wishes }: Waiting & { after?: number } = {}): Promise<
    Output<"GET /v1/sessions/{id}/denials">["denials"]
  > {
    return (await this.#http.call("GET /v1/sessions/{id}/denials", { id: this.id, ...wishes }, { signal })).denials
  }

  /** It does not count as idle for this long. */
  async keepAwake(ms: number, waiting: Waiting = {}): Promise<void> {
    await this.#http.call("POST /v1/sessions/{id}/keep-awake", { id: this.id, ms }, waiting)
  }

  /** Deleting what is gone already is fine. */
  async delete(waiting: Waiting = {}): Promise<void> {
    if (this.#isDeleted) return
    const gone = (thrown: unknown): void => {
      if ((thrown as { code?: unknown }).code !== "not_found") throw thrown
    }
    await this.#http.call("DELETE /v1/sessions/{id}", { id: this.id }, waiting).then(() => undefined, gone)
    this.#isDeleted = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isKept) await this.delete()
  }

  #do(verb: Verb, waiting: Waiting = {}): Promise<this> {
    return this.#renew(`POST /v1/sessions/{id}/${verb}`, { id: this.id }, waiting)
  }

  async #renew<R extends CallRoute>(route: R, input: Input<R>, waiting: Waiting): Promise<this> {
    this.info = (await this.#http.call(route, input, waiting)) as SessionInfo
    return this
  }
}
