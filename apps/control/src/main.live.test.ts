import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { freePort } from "@warren/base/testing/free-port.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { lackOfPostgres, PostgresServer } from "./testing/postgres-server.ts"

let folder: TempFolder
let file: string
beforeAll(async () => {
  folder = await TempFolder.make()
  file = await bundleProgram(new URL("./main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

interface Answer {
  readonly status: number
  readonly body: any // oxlint-disable-line typescript/no-explicit-any -- a test reads whatever came
}

/** The real program, in a process of its own. */
class Control implements AsyncDisposable {
  readonly port: number
  readonly home: string
  said = ""
  readonly #child: ChildProcess

  private constructor(port: number, home: string, settings: Record<string, string>) {
    this.port = port
    this.home = home
    const env = { PATH: process.env["PATH"], WARREN_HOME: home, WARREN_PORT: String(port), ...settings }
    this.#child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.said += chunk.toString()))
    }
  }

  static async start(home: string, settings: Record<string, string> = {}): Promise<Control> {
    const control = new Control(await freePort(), home, settings)
    await Promise.race([control.#heard("control.ready"), once(control.#child, "exit")])
    return control
  }

  async link(): Promise<string> {
    await this.#heard("/join#")
    return /\/join#([\w-]{43})/.exec(this.said)?.[1] ?? ""
  }

  async ask(path: string, body?: object, method?: string): Promise<Answer> {
    const token = await readFile(`${this.home}/control/token`, "utf8").catch(() => "")
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      headers: { authorization: `Bearer ${token.trim()}` },
      method: method ?? (body ? "POST" : "GET"),
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: response.status, body: await response.json() }
  }

  async status(path: string, token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(`http://127.0.0.1:${this.port}${path}`, { headers })).status
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const gone = once(this.#child, "exit")
    this.#child.kill(signal)
    await gone
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL")
  }

  async #heard(word: string): Promise<void> {
    while (!this.said.includes(word)) {
      await Promise.race([
        once(this.#child.stdout as NodeJS.EventEmitter, "data"),
        once(this.#child.stderr as NodeJS.EventEmitter, "data"),
      ])
    }
  }
}

describe("the control plane's program", () => {
  test("makes its keys at the first start, for itself only, and keeps them", async () => {
    const home = folder.at("a")
    {
      await using control = await Control.start(home)
      expect(await control.link()).toHaveLength(43)
      for (const name of ["token", "statement.key", "control.db"]) {
        expect([name, statSync(`${home}/control/${name}`).mode & 0o077]).toEqual([name, 0])
      }
      expect(await control.end("SIGTERM")).toBe(0)
    }
    const before = await readFile(`${home}/control/statement.pub`, "utf8")
    await using again = await Control.start(home)
    expect(await readFile(`${home}/control/statement.pub`, "utf8")).toBe(before)
    const account = await again.ask("/v1/account")
    expect(account.body).toMatchObject({ user: { role: "admin" }, via: "token-file" })
    const health = await again.ask("/v1/health")
    expect([health.status, health.body.error]).toEqual([503, expect.objectContaining({ hint: expect.any(String) })])
  })

  test("killed at any moment, what it acknowledged is there, and the audit log is whole", async () => {
    const home = folder.at("b")
    const acknowledged: string[] = []
    for (let round = 0; round < 3; round++) {
      await using control = await Control.start(home)
      const make = async (n: number): Promise<void> => {
        for (let m = 0; m < 200; m++) {
          const { body } = await control.ask("/v1/invites", { name: `u${round}-${n}-${m}` })
          acknowledged.push(body.invite.id)
          if (acknowledged.length > 30 * (round + 1)) await control.end("SIGKILL")
        }
      }
      await Promise.allSettled([make(1), make(2), make(3)])
    }
    await using control = await Control.start(home)
    const { body } = await control.ask("/v1/invites")
    const kept = new Set(body.items.map(({ id }: { id: string }) => id))
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
    const verified = await control.ask("/v1/audit/verify")
    expect(verified.body).toMatchObject({ isWhole: true })
    expect(verified.body.entries).toBeGreaterThanOrEqual(acknowledged.length)
  })

  test("a key that others can read stops the start", async () => {
    const home = folder.at("c")
    await (await Control.start(home)).end("SIGTERM")
    const { chmodSync } = await import("node:fs")
    chmodSync(`${home}/control/statement.key`, 0o644)
    await using control = await Control.start(home)
    expect([await control.end("SIGKILL"), control.said]).toEqual([1, expect.stringContaining("others may read")])
  })

  test.skipIf(process.getuid?.() !== 0)("with many users it does not run as root", async () => {
    await using control = await Control.start(folder.at("d"), { WARREN_USERS: "many" })
    expect([await control.end("SIGKILL"), control.said]).toEqual([1, expect.stringContaining("does not run as root")])
  })

  test.skipIf(lackOfPostgres() !== undefined)(
    "keeps what it knows in PostgreSQL, for the next on another machine",
    async () => {
      await using server = await PostgresServer.start()
      const settings = { WARREN_DATABASE: await server.database() }
      {
        await using control = await Control.start(folder.at("e"), settings)
        expect((await control.ask("/v1/users", { name: "alice" })).status).toBe(201)
        await control.end("SIGTERM")
      }
      await using first = await Control.start(folder.at("e"), settings)
      await using other = await Control.start(folder.at("f"), settings)
      const made = (await first.ask("/v1/tokens", { scopes: ["account:read"] })).body
      expect(await other.status("/v1/account", made.token)).toBe(200)
      await first.ask(`/v1/tokens/${made.about.id}`, undefined, "DELETE")
      expect(await other.status("/v1/account", made.token)).toBe(401)
      expect((await other.ask("/v1/users")).body.items.map(({ name }: { name: string }) => name)).toContain("alice")
    },
  )
})
