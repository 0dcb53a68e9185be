import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"

/** Not everybody's PATH has the folders where such programs are. */
const folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
const scriptMs = 30_000

function find(tool: string): string | undefined {
  return folders
    .map((folder) => join(folder, tool))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

export function hasTool(tool: string): boolean {
  return find(tool) !== undefined
}

/** Refuses when there is nobody to write rules for us. */
export function checkTools(): void {
  if (hasTool("nft")) return
  throw new Fault("unsupported", "a network of its own needs nft", { hint: "apt-get install nftables" })
}

/** All of the script, or nothing of it. Rejects with what was said. */
export async function runNft(script: string): Promise<void> {
  await run("nft", ["-f", "-"], script)
}

/** What it prints. Rejects with what it said. */
export function run(tool: string, args: readonly string[], script = ""): Promise<string> {
  const program = find(tool) ?? tool
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], timeout: scriptMs, killSignal: "SIGKILL" })
    let [printed, said] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)))
    const failed = (why: string, cause?: unknown): void =>
      reject(new Fault("unavailable", `the network could not be set up: ${tool} ${why}`, { cause }))
    child.once("error", (cause) => failed("cannot be run", cause))
    child.once("close", (code) => (code === 0 ? resolve(printed) : failed(`failed: ${said.trim()}`)))
    // When it dies before it has read everything, its end tells why.
    child.stdin.on("error", () => undefined)
    child.stdin.end(script)
  })
}
