import { execFile } from "node:child_process"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Sandbox } from "../../driver.ts"
import { exec, Execution, type ExecResult, type SpawnOptions } from "../../init/exec.ts"
import type { Mount } from "../../sandbox-spec.ts"

const execute = promisify(execFile)
const inside = "/opt/nasty"

/** What one of the programs in `nasty.c` said: how far it got, and what stopped it. */
export interface Said {
  readonly name: string
  readonly number: number
  /** `0`, or the name of an errno. */
  readonly errno: string
}

/** The nasty programs, compiled, in a folder of their own. */
export class Nasty implements AsyncDisposable {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async build(): Promise<Nasty> {
    const folder = await mkdtemp(join(tmpdir(), "warren-nasty-"))
    await chmod(folder, 0o755)
    const source = join(import.meta.dirname, "nasty.c")
    await execute("cc", ["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", join(folder, "nasty"), source])
    return new Nasty(folder)
  }

  get mount(): Mount {
    return { from: join(this.#folder, "nasty"), to: inside, isReadOnly: true }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true })
  }
}

/** Runs one to its end. */
export function nasty(
  sandbox: Sandbox,
  args: readonly string[],
  more: Partial<SpawnOptions> = {},
): Promise<ExecResult> {
  return exec(sandbox, { argv: [inside, ...args], ...more })
}

/** Starts one that holds on to what it took, and waits for its first line. */
export async function hold(
  sandbox: Sandbox,
  args: readonly string[],
  more: Partial<SpawnOptions> = {},
): Promise<Said & AsyncDisposable & { readonly execution: Execution }> {
  const execution = await Execution.start(sandbox, { argv: [inside, ...args], ...more })
  const first = await execution.output().next()
  const [said] = parse(first.done ? Buffer.alloc(0) : first.value.bytes)
  if (!said) throw new Error(`${args.join(" ")} ended without a word`)
  return { ...said, execution, [Symbol.asyncDispose]: () => execution[Symbol.asyncDispose]() }
}

export function parse(output: Buffer): Said[] {
  const lines = output.toString().trim().split("\n").filter(Boolean)
  return lines.map((line) => {
    const [name = "", number = "", errno = ""] = line.split(" ")
    return { name, number: Number(number), errno }
  })
}
