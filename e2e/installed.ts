import { cp } from "node:fs/promises"
import { resolve } from "node:path"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { freePort } from "@warren/base/testing/free-port.ts"

/** What the programs do not have in themselves. */
const external = ["libsql", "@libsql", "@neon-rs", "detect-libc"]

/** A copy of the built programs, so that what is built while a test runs does not change what it runs. */
export class Installed implements AsyncDisposable {
  readonly cli: CliProgram
  readonly folder: TempFolder

  private constructor(folder: TempFolder) {
    this.folder = folder
    this.cli = CliProgram.at(folder.at("programs", "cli.js"))
  }

  static async make(): Promise<Installed> {
    const folder = await TempFolder.make()
    await cp(resolve("dist"), folder.at("programs"), { recursive: true })
    // Copied: the checkout may lie where other accounts cannot go, and some tests run these programs as others.
    for (const name of external)
      await cp(resolve("node_modules", name), folder.at("node_modules", name), { recursive: true })
    return new Installed(folder)
  }

  /** A place for a Warren of its own, with a port of its own; whatever was started in it is stopped when it is disposed. */
  async home(): Promise<Home> {
    return new Home(this.cli, await TempFolder.make(), await freePort())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]()
  }
}

/** Sandboxes that wait for sessions outlive a Warren as all do: a test that leaves nothing behind has none of them. */
const noPool = { WARREN_POOL_MB: "0", WARREN_POOL_LEAST: "0" }

export class Home implements AsyncDisposable {
  readonly cli: CliProgram
  readonly port: number
  readonly #folder: TempFolder

  constructor(cli: CliProgram, folder: TempFolder, port: number) {
    this.#folder = folder
    this.port = port
    this.cli = cli.with({ ...noPool, WARREN_HOME: folder.path, WARREN_PORT: String(port) })
  }

  get path(): string {
    return this.#folder.path
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stdout } = await this.cli.run(["ls", "-q"])
    await this.cli.run(["rm", ...stdout.split("\n").filter(Boolean)])
    await this.cli.run(["stop"])
    await this.#folder[Symbol.asyncDispose]()
  }
}
