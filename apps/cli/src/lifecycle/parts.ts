import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Plan } from "./plan.ts"
import { unnamedFile } from "./unnamed-file.ts"

const stopMs = 10_000
const forwardedFd = 3

/** Warren's processes. When one ends by itself, all end: half a Warren helps nobody. */
export class Parts implements AsyncDisposable {
  readonly #plan: Plan
  readonly #children: ChildProcess[] = []
  readonly #broken = new AbortController()
  #isStopping = false

  constructor(plan: Plan) {
    this.#plan = plan
    using forwarded = unnamedFile(JSON.stringify(plan.forwarded), plan.account)
    const settings = { ...plan.settings, WARREN_FORWARDED: `/proc/self/fd/${forwardedFd}` }
    this.#run("runner", settings, forwarded.fd)
    this.#run("control", tlsSettings())
  }

  get pids(): number[] {
    return this.#children.flatMap(({ pid }) => pid ?? [])
  }

  /** Aborts when a part has ended by itself. */
  get broken(): AbortSignal {
    return this.#broken.signal
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#children.map(end))
  }

  #run(app: string, settings: Readonly<Record<string, string>>, fd?: number): void {
    const { programs, home, port, account } = this.#plan
    const env = { ...environmentFor(account), ...settings, WARREN_HOME: home, WARREN_PORT: String(port) }
    const child = spawn(process.execPath, [join(programs, `${app}.js`)], {
      stdio: ["ignore", "ignore", "inherit", ...(fd === undefined ? [] : [fd])],
      env,
      ...(account ? { uid: account.uid, gid: account.gid, cwd: "/" } : {}),
    })
    this.#children.push(child)
    child.once("error", (cause) => this.#end(new Fault("unavailable", `${app} could not be started`, { cause })))
    child.once("exit", (code, signal) => {
      const how = signal ?? `exit code ${code}`
      this.#end(
        new Fault("internal", `Warren's ${app} ended unexpectedly (${how})`, { hint: `see ${home}/runner/logs` }),
      )
    })
  }

  #end(fault: Fault): void {
    if (!this.#isStopping) this.#broken.abort(fault)
  }
}

/** Another account's runner does not get the variables of whoever starts it. */
function environmentFor(account: Plan["account"]): NodeJS.ProcessEnv {
  if (!account) return process.env
  return { PATH: process.env["PATH"], HOME: account.home, USER: account.name, LOGNAME: account.name }
}

/** What says how the control plane shows itself is no secret, and counts for whichever account it runs as. */
function tlsSettings(): Record<string, string> {
  const names = ["WARREN_TLS_CERT", "WARREN_TLS_KEY", "WARREN_PUBLIC_URL"]
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

/** Ask, wait, force. */
async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  const force = setTimeout(() => child.kill("SIGKILL"), stopMs)
  await gone
  clearTimeout(force)
}
