import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect } from "vitest"
import type { CliProgram } from "../../apps/cli/src/testing/cli-program.ts"
import { Installed, type Home } from "../installed.ts"

/** A Warren that was started by its command line, and a folder on this side of it. */
export class CliWorld implements AsyncDisposable {
  installed!: Installed
  home!: Home
  cli!: CliProgram
  folder!: TempFolder

  async open(): Promise<void> {
    this.installed = await Installed.make()
    this.home = await this.installed.home()
    this.cli = this.home.cli
    this.folder = await TempFolder.make()
    expect((await this.cli.run(["start", "--daemon"])).code).toBe(0)
  }

  /** What it says when it ends well. */
  readonly said = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await this.cli.run(args)
    expect(stderr).toBe("")
    expect(code).toBe(0)
    return stdout
  }

  readonly session = async (name: string, ...flags: string[]): Promise<AsyncDisposable> => {
    await this.said("create", "--name", name, ...flags)
    return { [Symbol.asyncDispose]: async () => void (await this.cli.run(["rm", name])) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.folder[Symbol.asyncDispose]()
    await this.home[Symbol.asyncDispose]()
    await this.installed[Symbol.asyncDispose]()
  }
}
