import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { eventually } from "@warren/base/testing/eventually.ts"
import { controlSocketOf, gatewaySocketOf, rpcSocketOf, tokenFileOf } from "@warren/protocol/places.ts"
import { Warren } from "@warren/sdk/warren.ts"
import { describe, expect, test } from "vitest"
import { dist, Home } from "../runner/home.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

const programs = process.env["WARREN_TEST_PROGRAMS"] ? resolve(process.env["WARREN_TEST_PROGRAMS"]) : dist
const units = resolve(import.meta.dirname, "../../packaging/systemd")
const activate = "/usr/bin/systemd-socket-activate"

/** A program that systemd's own tool starts when somebody first connects to one of its sockets. */
class Activated implements AsyncDisposable {
  readonly #child: ChildProcess
  said = ""

  constructor(name: "runner" | "control", sockets: Readonly<Record<string, string>>, env: Record<string, string>) {
    const listen = Object.values(sockets).flatMap((address) => ["-l", address])
    const given = Object.entries({ ...env, PATH: process.env["PATH"] ?? "" }).flatMap(([key, value]) => [
      "-E",
      `${key}=${value}`,
    ])
    const names = `--fdname=${Object.keys(sockets).join(":")}`
    this.#child = spawn(activate, [...listen, ...given, names, process.execPath, `${programs}/${name}.js`])
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.on("data", (piece) => (this.said += piece))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  listens(): Promise<void> {
    return eventually(() => this.said.includes("Listening on"))
  }

  /** Ended in order: its exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const gone = once(this.#child, "exit")
    this.#child.kill("SIGTERM")
    await gone
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

const closeOnExec = 0o2000000

/** Whether a file descriptor of a process is kept from its children. */
function isPrivate(pid: number, fd: number): boolean {
  const [, flags = "0"] = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8")) ?? []
  return (Number.parseInt(flags, 8) & closeOnExec) !== 0
}

describe("started by the first who asks", () => {
  test("control plane and runner answer on sockets that were open before them", { timeout: 120_000 }, async () => {
    await using home = new Home()
    const port = await freePort()
    const env = { WARREN_HOME: home.path, WARREN_PORT: String(port), WARREN_POOL_LEAST: "0", WARREN_POOL_MB: "0" }
    const [rpc, control, gateway] = [rpcSocketOf, controlSocketOf, gatewaySocketOf].map((of) => of(home.path))
    mkdirSync(dirname(rpc ?? ""), { recursive: true, mode: 0o700 })
    await using runner = new Activated(
      "runner",
      { rpc: rpc ?? "", control: control ?? "", gateway: gateway ?? "" },
      env,
    )
    await using plane = new Activated("control", { http: `127.0.0.1:${port}` }, env)
    await Promise.all([runner.listens(), plane.listens()])
    expect(existsSync(tokenFileOf(home.path))).toBe(false)
    const health = await fetch(`http://127.0.0.1:${port}/health`)
    expect(await health.json()).toMatchObject({ status: "ok" })
    const token = readFileSync(tokenFileOf(home.path), "utf8").trim()
    const warren = new Warren({ url: `http://127.0.0.1:${port}`, token })
    {
      await using session = await warren.sessions.create({ network: { mode: "none" } })
      expect((await session.exec("env; echo hello")).stdout).toMatch(/hello\n$/)
      expect((await session.exec("env")).stdout).not.toContain("LISTEN_")
      for (const [program, count] of [
        [runner, 3],
        [plane, 1],
      ] as const) {
        for (let n = 0; n < count; n++) expect(isPrivate(program.pid, 3 + n)).toBe(true)
      }
    }
    expect([await plane.stop(), await runner.stop()]).toEqual([0, 0])
    // They are not theirs to take away.
    expect([rpc, control, gateway].map((path) => existsSync(path ?? ""))).toEqual([true, true, true])
  })
})

test("the units are what systemd understands", () => {
  const known = /^\[(Unit|Socket|Service|Install)\]$|^#|^[A-Z]\w+=|^$/
  for (const name of readdirSync(units).filter((one) => one.endsWith(".socket"))) {
    const text = readFileSync(`${units}/${name}`, "utf8")
    for (const line of text.split("\n")) expect(line, name).toMatch(known)
    expect(text).toMatch(/^FileDescriptorName=(http|control|gateway)$/m)
  }
  // Complaints about accounts and programs that are not on this machine are none about the file.
  const socket = `${units}/warren-control.socket`
  const said = execFileSync("sh", ["-c", `systemd-analyze verify "${socket}" 2>&1 || true`]).toString()
  expect(said.split("\n").filter((line) => line.includes("warren-control.socket:"))).toEqual([])
})
