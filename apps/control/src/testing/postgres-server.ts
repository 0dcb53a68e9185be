import { execFile, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { chown, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { systemClock } from "@warren/base/clock.ts"
import postgres from "postgres"

const run = promisify(execFile)
const versions = "/usr/lib/postgresql"
const bin = existsSync(versions) ? join(versions, readdirSync(versions).toSorted().at(-1) ?? "", "bin") : ""
const askAgainMs = 20

/** Why there is no PostgreSQL to test against; undefined when there is one. */
export function lackOfPostgres(): string | undefined {
  if (!existsSync(join(bin, "initdb"))) return "PostgreSQL is not installed: apt-get install postgresql"
  if (process.getuid?.() !== 0) return "only root can start one as the account postgres"
  return undefined
}

/** A real PostgreSQL of a test's own, on a Unix socket; gone with everything in it when the test ends. */
export class PostgresServer implements AsyncDisposable {
  readonly #folder: string
  readonly #child: ChildProcess
  #databases = 0

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder
    this.#child = child
  }

  static async start(): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), "wpg-"))
    const { uid, gid } = await accountOf("postgres")
    await chown(folder, uid, gid)
    const as = { uid, gid, cwd: "/", env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C" } }
    const data = join(folder, "data")
    await run(join(bin, "initdb"), ["-D", data, "-A", "trust", "-N", "-U", "postgres"], as)
    const settings = ["listen_addresses=", "fsync=off", "max_connections=50", `unix_socket_directories=${folder}`]
    const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])]
    const child = spawn(join(bin, "postgres"), args, { ...as, stdio: "ignore" })
    const server = new PostgresServer(folder, child)
    await server.#ready()
    return server
  }

  /** The address of a new, empty database. */
  async database(): Promise<string> {
    const name = `test_${++this.#databases}`
    await this.#query(`CREATE DATABASE ${name}`)
    return this.#address(name)
  }

  /** As a crash of the machine would end it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) {
      const gone = once(this.#child, "exit")
      this.#child.kill("SIGQUIT")
      await gone
    }
    await rm(this.#folder, { recursive: true, force: true })
  }

  #address(name: string): string {
    return `postgres://postgres@localhost/${name}?host=${this.#folder}`
  }

  async #query(sql: string): Promise<void> {
    const client = postgres({ host: this.#folder, user: "postgres", database: "postgres", max: 1, connect_timeout: 5 })
    try {
      await client.unsafe(sql)
    } finally {
      await client.end()
    }
  }

  async #ready(): Promise<void> {
    while (!(await this.#query("SELECT 1").then(...yesOrNo))) {
      if (this.#child.exitCode !== null) throw new Error("PostgreSQL did not start")
      await systemClock.sleep(askAgainMs)
    }
  }
}

const yesOrNo = [() => true, () => false] as const

async function accountOf(name: string): Promise<{ uid: number; gid: number }> {
  const number = async (flag: string): Promise<number> => Number((await run("id", [flag, name])).stdout)
  return { uid: await number("-u"), gid: await number("-g") }
}
