import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { resolve } from "node:path"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { Warren } from "@warren/sdk/warren.ts"
import { dist, Home } from "../runner/home.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

/** How often it is tried whether a door answers: nobody tells when it does. */
const tryMs = 10
/** Whoever works on one program tries theirs, not everybody's. */
const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist

/** A runner and a control plane as they ship, in a home and on a port of their own, and the SDK to ask them with. */
export class ApiSystem implements AsyncDisposable {
  readonly home: Home
  readonly port: number
  readonly url: string
  readonly #env: NodeJS.ProcessEnv
  #runner: Program
  #control: Program

  private constructor(home: Home, port: number, env: NodeJS.ProcessEnv) {
    this.home = home
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.#env = env
    this.#runner = new Program("runner", env)
    this.#control = new Program("control", env)
  }

  static async start(settings: NodeJS.ProcessEnv = {}): Promise<ApiSystem> {
    const home = new Home()
    const port = await freePort()
    const noPool = { WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0" }
    const env = { ...process.env, ...noPool, ...settings, WARREN_HOME: home.path, WARREN_PORT: String(port) }
    const system = new ApiSystem(home, port, env)
    try {
      await system.#answers()
    } catch (failure) {
      await system[Symbol.asyncDispose]()
      throw failure
    }
    return system
  }

  get token(): string {
    return readFileSync(tokenFileOf(this.home.path), "utf8").trim()
  }

  get warren(): Warren {
    return new Warren({ url: this.url, token: this.token })
  }

  get pids(): { readonly runner: number; readonly control: number } {
    return { runner: this.#runner.pid, control: this.#control.pid }
  }

  /** What both have said on stdout and stderr. */
  get said(): string {
    return this.#runner.said + this.#control.said
  }

  get isRunning(): boolean {
    return this.#runner.isRunning && this.#control.isRunning
  }

  /** A request with the token, unless `headers` says otherwise. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.token}`, ...(init.headers as Record<string, string>) }
    return fetch(this.url + path, { ...init, headers })
  }

  /** Ends it as `kill -9` does; a new one is not there yet. */
  async killControl(): Promise<void> {
    await this.#control.end("SIGKILL")
  }

  async startControl(): Promise<void> {
    this.#control = new Program("control", this.#env)
    await this.#answers()
  }

  /** One that is killed so soon that it may not have come to answer. A new one is not there yet. */
  async killControlEarly(afterMs: number): Promise<void> {
    this.#control = new Program("control", this.#env)
    await pause(afterMs)
    await this.killControl()
  }

  /** Told to stop, and started again when it has: how the one before ended. */
  async replaceControl(): Promise<number | null> {
    const ended = await this.#control.end("SIGTERM")
    await this.startControl()
    return ended
  }

  async restartRunner(): Promise<void> {
    await this.#runner.end("SIGKILL")
    await this.#startRunner()
  }

  async replaceRunner(): Promise<number | null> {
    const ended = await this.#runner.end("SIGTERM")
    await this.#startRunner()
    return ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#control.end("SIGTERM")
    await this.#runner.end("SIGTERM")
    await this.home[Symbol.asyncDispose]()
  }

  async #startRunner(): Promise<void> {
    this.#runner = new Program("runner", this.#env)
    await this.#answers()
  }

  async #answers(): Promise<void> {
    for (;;) {
      for (const program of [this.#runner, this.#control]) {
        if (!program.isRunning) throw new Error(`the ${program.name} ended: ${program.said}`)
      }
      try {
        if ((await this.fetch("/v1/health")).ok) return
      } catch {
        // Its door, or its token, is not there yet.
      }
      await pause(tryMs)
    }
  }
}

const saidCharsMax = 1_000_000

class Program {
  readonly name: string
  readonly pid: number
  readonly #child: ChildProcess
  said = ""

  constructor(name: "runner" | "control", env: NodeJS.ProcessEnv) {
    this.name = name
    this.#child = spawn(process.execPath, [`${programs}/${name}.js`], { env, stdio: ["ignore", "pipe", "pipe"] })
    this.pid = this.#child.pid ?? 0
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.said = (this.said + chunk.toString()).slice(-saidCharsMax)))
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Its exit code; null when it was killed. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    if (!this.isRunning) return this.#child.exitCode
    const gone = once(this.#child, "close")
    this.#child.kill(signal)
    await gone
    return this.#child.exitCode
  }
}
