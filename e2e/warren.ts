import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { freePort } from "@warren/base/testing/free-port.ts"

const root = resolve(import.meta.dirname, "..")

/** A whole Warren, started as a newcomer starts it, in a folder and on a port of its own. */
export class Warren implements AsyncDisposable {
  readonly home: string
  readonly port: number
  readonly #child: ChildProcess
  #said = ""

  private constructor(home: string, port: number, child: ChildProcess) {
    this.home = home
    this.port = port
    this.#child = child
  }

  /** Resolves when it says that it is running. `home`: of one that ran before; `more`: settings besides those of the test. */
  static async start(home?: string, more: Readonly<Record<string, string>> = {}): Promise<Warren> {
    const folder = home ?? (await mkdtemp(join(tmpdir(), "we-")))
    const port = await freePort()
    // Sandboxes that wait for sessions outlive a Warren as all do: a test that leaves nothing behind has none of them.
    const noPool = { WARREN_POOL_MB: "0", WARREN_POOL_LEAST: "0" }
    const env = { ...process.env, ...noPool, ...more, WARREN_HOME: folder, WARREN_PORT: String(port) }
    const child = spawn(process.execPath, ["tools/enter.mjs", "start"], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    })
    const warren = new Warren(folder, port, child)
    await warren.#running()
    return warren
  }

  get said(): string {
    return this.#said
  }

  async token(): Promise<string> {
    return (await readFile(join(this.home, "control", "token"), "utf8")).trim()
  }

  /** A request with the token, unless `headers` says otherwise. */
  async get(path: string, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    const given = headers ?? { authorization: `Bearer ${await this.token()}` }
    return fetch(`http://127.0.0.1:${this.port}${path}`, { headers: given, ...(signal ? { signal } : {}) })
  }

  /** Ctrl-C; says how it ended. The data stays. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit")
      this.#child.kill("SIGINT")
      await gone
    }
    return this.#child.exitCode
  }

  /** Resolves with the exit code when it ends by itself. */
  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit")
    return this.#child.exitCode
  }

  /** Sandboxes outlive a Warren: what a test has made is deleted first. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.#deleteSessions()
    await this.stop()
    await rm(this.home, { recursive: true, force: true })
  }

  async #deleteSessions(): Promise<void> {
    const headers = { authorization: `Bearer ${await this.token()}` }
    const { items } = (await (await this.get("/v1/sessions?limit=200")).json()) as { items: { id: string }[] }
    for (const { id } of items)
      await fetch(`http://127.0.0.1:${this.port}/v1/sessions/${id}`, { method: "DELETE", headers })
  }

  #running(): Promise<void> {
    return new Promise((resolve, reject) => {
      const hear = (chunk: Buffer): void => {
        this.#said += chunk.toString()
        if (this.#said.includes("Warren is running")) resolve()
      }
      this.#child.stdout?.on("data", hear)
      this.#child.stderr?.on("data", hear)
      this.#child.once("exit", (code) => reject(new Error(`Warren ended with ${code}: ${this.#said}`)))
    })
  }
}
