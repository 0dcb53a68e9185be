import { execFileSync } from "node:child_process"
import { cp, symlink } from "node:fs/promises"
import { resolve } from "node:path"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { freePort } from "./warren.ts"

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
    await symlink(resolve("node_modules"), folder.at("node_modules"))
    return new Installed(folder)
  }

  /** The CLI of a Warren with a home and a port of its own, which is stopped when it is disposed. */
  async home(env: Readonly<Record<string, string>> = {}): Promise<Home> {
    return new Home(this.cli, await TempFolder.make(), { WARREN_PORT: String(await freePort()), ...env })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]()
  }
}

export class Home implements AsyncDisposable {
  readonly cli: CliProgram
  readonly port: number
  readonly #folder: TempFolder

  constructor(cli: CliProgram, folder: TempFolder, env: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.port = Number(env["WARREN_PORT"])
    this.cli = cli.with({ WARREN_HOME: folder.path, ...env })
  }

  get path(): string {
    return this.#folder.path
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cli.run(["stop"])
    await emptied(this.#folder)
  }
}

/** What a runner that was killed may have left mounted goes before the folder. */
async function emptied(folder: TempFolder): Promise<void> {
  const mounts = execFileSync("sh", ["-c", `grep -F ' ${folder.path}/' /proc/self/mountinfo | cut -d' ' -f5 || true`])
  for (const mount of mounts.toString().split("\n").filter(Boolean).toReversed()) {
    execFileSync("umount", ["-l", mount], { stdio: "ignore" })
  }
  await folder[Symbol.asyncDispose]()
}
