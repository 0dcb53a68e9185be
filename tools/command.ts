import { spawn } from "node:child_process"
import { resolve } from "node:path"

export interface Outcome {
  readonly ok: boolean
  /** Everything it said; shown only when it failed. */
  readonly output: string
}

/** More than this of one check is not read by anybody. */
const outputCharsMax = 64_000

/** Runs one of our development tools on a folder, with the version this repository has installed. */
export function runTool(name: string, args: readonly string[], folder: string): Promise<Outcome> {
  return new Promise((done, reject) => {
    const env = { ...process.env, NO_COLOR: "1" }
    const child = spawn(resolve("node_modules/.bin", name), args, {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    const keep = (chunk: Buffer): void => {
      if (output.length < outputCharsMax) output += chunk.toString()
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.once("error", reject)
    child.once("close", (code) => done({ ok: code === 0, output: output.slice(0, outputCharsMax) }))
  })
}
