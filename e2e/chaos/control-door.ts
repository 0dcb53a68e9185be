import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { Fault, messageOf, type FaultData } from "@warren/base/fault.ts"
import { tokenFileOf } from "@warren/protocol/places.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

const tryMs = 10

/** A control plane without a runner, as the process it is, and its owner who asks it over HTTP. */
export class ControlDoor implements AsyncDisposable {
  readonly readyMs: number
  readonly #home: string
  readonly #port: number
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  private constructor(home: string, port: number, child: ChildProcess, ended: Promise<unknown>, readyMs: number) {
    this.#home = home
    this.#port = port
    this.#child = child
    this.#ended = ended
    this.readyMs = readyMs
  }

  /** Resolves when it answers; rejects with what it said when it ends instead. */
  static async start(home: string, programs: string, env: NodeJS.ProcessEnv = {}): Promise<ControlDoor> {
    const begun = performance.now()
    const port = await freePort()
    const all = { ...process.env, ...env, WARREN_HOME: home, WARREN_PORT: String(port) }
    const child = spawn(process.execPath, [`${programs}/control.js`], { env: all, stdio: ["ignore", "ignore", "pipe"] })
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()))
    const ended = once(child, "close")
    for (;;) {
      if (child.exitCode !== null || child.signalCode !== null) {
        await ended
        throw new Fault("unavailable", `the control plane ended: ${said}`)
      }
      const answer = await fetch(`http://127.0.0.1:${port}/v1/login`).catch(() => undefined)
      if (answer) return new ControlDoor(home, port, child, ended, performance.now() - begun)
      await pause(tryMs)
    }
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async died(): Promise<void> {
    await this.#ended
  }

  get(path: string): Promise<Record<string, unknown>> {
    return this.#ask(path, {})
  }

  async items(path: string): Promise<Record<string, unknown>[]> {
    return (await this.get(path))["items"] as Record<string, unknown>[]
  }

  /** `token`: empty for somebody who has none yet. `key`: the same one twice is one request. */
  post(
    path: string,
    body: object,
    how: { readonly token?: string; readonly key?: string } = {},
  ): Promise<Record<string, unknown>> {
    const headers: Record<string, string> = how.key === undefined ? {} : { "idempotency-key": how.key }
    return this.#ask(path, { method: "POST", body: JSON.stringify(body), headers }, how.token)
  }

  delete(path: string): Promise<Record<string, unknown>> {
    return this.#ask(path, { method: "DELETE" })
  }

  async status(path: string, token: string): Promise<number> {
    return (await this.#fetch(path, {}, token)).status
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.#child.kill("SIGTERM")
    await this.#ended
  }

  async #ask(path: string, init: RequestInit, token?: string): Promise<Record<string, unknown>> {
    const answer = await this.#fetch(path, init, token ?? readFileSync(tokenFileOf(this.#home), "utf8").trim())
    const text = await answer.text().catch((cause: unknown) => gone(cause))
    const body = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>
    if (!answer.ok) throw Fault.fromData(body["error"] as FaultData)
    return body
  }

  #fetch(path: string, init: RequestInit, token: string): Promise<Response> {
    const headers = {
      ...(init.headers as Record<string, string>),
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    }
    return fetch(`http://127.0.0.1:${this.#port}${path}`, { ...init, headers }).catch(gone)
  }
}

function gone(cause: unknown): never {
  throw new Fault("unavailable", `the connection ended: ${messageOf(cause)}`, { cause })
}
