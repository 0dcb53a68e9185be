import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { chmod, readFile } from "node:fs/promises"
import { setTimeout as pause } from "node:timers/promises"
import { promisify } from "node:util"
import { errnoOf } from "@warren/base/fault.ts"
import { Scope } from "@warren/base/scope.ts"
import type { CliProgram, Running } from "../../apps/cli/src/testing/cli-program.ts"
import { Installed } from "../installed.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

const run = promisify(execFile)

export interface Answer {
  readonly status: number
  /** As it came. */
  readonly body: Readonly<Record<string, unknown>>
}

interface Asked {
  readonly token?: string
  readonly body?: object
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A machine with many users: launcher, control plane and accounts of its own. Whatever happens, none of them stays. */
export class ManyUsers implements AsyncDisposable {
  readonly mark = `wr${randomBytes(2).toString("hex")}`
  readonly control = `${this.mark}ctl`
  readonly port: number
  readonly cli: CliProgram
  readonly #installed: Installed
  readonly #scope = new Scope()
  launcher!: Running

  private constructor(installed: Installed, port: number, settings: Readonly<Record<string, string>>) {
    this.#installed = installed
    this.port = port
    this.cli = installed.cli.with({
      WARREN_MACHINE: installed.folder.at("machine"),
      WARREN_RUN: installed.folder.at("run"),
      WARREN_CONTROL_ACCOUNT: this.control,
      WARREN_PORT: String(port),
      WARREN_POOL_MB: "0",
      WARREN_POOL_LEAST: "0",
      ...settings,
    })
  }

  static async open(settings: Readonly<Record<string, string>> = {}): Promise<ManyUsers> {
    const installed = await Installed.make()
    // Others run these programs, too.
    await chmod(installed.folder.path, 0o755)
    const machine = new ManyUsers(installed, await freePort(), settings)
    machine.#scope.defer(() => installed[Symbol.asyncDispose]())
    machine.#scope.defer(() => sweep(machine.mark))
    try {
      await machine.startLauncher()
    } catch (failure) {
      await machine[Symbol.asyncDispose]()
      throw failure
    }
    return machine
  }

  async startLauncher(): Promise<void> {
    this.launcher = this.cli.start("launcher")
    await this.launcher.until("launcher.ready")
  }

  async stopLauncher(): Promise<void> {
    this.launcher.child.kill("SIGTERM")
    await this.launcher.ended
  }

  at(...names: string[]): string {
    return this.#installed.folder.at(...names)
  }

  name(who: string): string {
    return `${this.mark}${who}`
  }

  async ask(path: string, { token, body, method, headers }: Asked): Promise<Answer> {
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method: method ?? (body ? "POST" : "GET"),
      headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    return { status: answer.status, body: (text.startsWith("{") ? JSON.parse(text) : {}) as Answer["body"] }
  }

  async rootToken(): Promise<string> {
    return (await readFile(this.at("machine", "control", "token"), "utf8")).trim()
  }

  /** A token of a user who came with an invite, as people do. */
  async tokenOf(name: string): Promise<string> {
    const origin = `http://localhost:${this.port}`
    const invite = await this.ask("/v1/invites", { token: await this.rootToken(), body: { name } })
    const body = JSON.stringify({ code: invite.body["code"], password: "correct horse battery" })
    const came = await fetch(`${origin}/v1/invites/redeem`, { method: "POST", body })
    const cookie = came.headers.getSetCookie()[0]?.split(";")[0] ?? ""
    const own = ["sessions:read", "sessions:write", "exec", "files:read", "files:write", "account:read", "ports"]
    const scopes = [...own, "images:read"]
    const made = await this.ask("/v1/tokens", { headers: { cookie, origin }, body: { scopes } })
    return String(made.body["token"])
  }

  /** What a command of an account says when it fails; undefined when it does not. */
  async attempt(account: string, command: string): Promise<string | undefined> {
    const drop = ["--reuid", account, "--regid", account, "--init-groups", "--inh-caps=-all"]
    try {
      await run("setpriv", [...drop, "sh", "-c", command], { cwd: "/" })
      return undefined
    } catch (failure) {
      return (failure as { stderr: string }).stderr
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.launcher?.child.exitCode === null) await this.stopLauncher()
    await this.#scope.close()
  }
}

/** Everything whose name begins so: accounts with their processes and homes, cgroups. */
async function sweep(mark: string): Promise<void> {
  const names = linesOf("/etc/passwd")
    .filter((line) => line.startsWith(mark))
    .map((line) => line.split(":")[0] ?? "")
  for (const name of names) {
    await until(() => Promise.resolve(hasEnded(name)))
    rmSync(`/home/${name}`, { recursive: true, force: true })
    await run("userdel", ["--force", name])
  }
  for (const top of readdirSync("/sys/fs/cgroup")) {
    const found = existsSync(`/sys/fs/cgroup/${top}/cgroup.procs`) ? readdirSync(`/sys/fs/cgroup/${top}`) : []
    for (const group of found.filter((one) => one.startsWith(`warren-${mark}`)))
      await run("find", [`/sys/fs/cgroup/${top}/${group}`, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])
  }
}

/** Ends what is left of an account's processes; true when nothing is. One that goes meanwhile is what is wanted. */
function hasEnded(name: string): boolean {
  const left = pidsOf(name)
  for (const pid of left) {
    try {
      process.kill(pid, "SIGKILL")
    } catch (failure) {
      if (errnoOf(failure) !== "ESRCH") throw failure
    }
  }
  return left.length === 0
}

/** Processes with an id of that account, its own or a subordinate one. */
export function pidsOf(name: string): number[] {
  const own = linesOf("/etc/passwd")
    .filter((line) => line.startsWith(`${name}:`))
    .map((line) => [Number(line.split(":")[2]), 1])
  const more = linesOf("/etc/subuid")
    .filter((line) => line.startsWith(`${name}:`))
    .map((line) => line.split(":").slice(1).map(Number))
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .map(Number)
    .filter((pid) => {
      const text = existsSync(`/proc/${pid}/status`) ? readStatus(pid) : ""
      const uid = Number(/^Uid:\t(\d+)/m.exec(text)?.[1] ?? 0)
      return (
        !/^State:\t[ZX]/m.test(text) &&
        [...own, ...more].some(([first = 0, count = 0]) => uid >= first && uid < first + count)
      )
    })
}

/** The runner's own process. */
export function runnerOf(name: string): number {
  const pid = pidsOf(name).find((one) => commandOf(one).includes("/runner.js"))
  if (pid === undefined) throw new Error(`${name} has no runner`)
  return pid
}

function commandOf(pid: number): string {
  return existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : ""
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8")
  } catch {
    return ""
  }
}

const linesOf = (file: string): string[] => readFileSync(file, "utf8").split("\n")

/** Asks again and again; one that never holds is ended by the test's own limit. */
export async function until(holds: () => Promise<boolean>, againMs = 50): Promise<void> {
  while (!(await holds())) await pause(againMs)
}
