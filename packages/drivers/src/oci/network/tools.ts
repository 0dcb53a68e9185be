import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"

/** Debian's name of the package for each program that is used. */
const packages = { ip: "iproute2", nft: "nftables", nsenter: "util-linux" } as const
type Tool = keyof typeof packages

/** Not everybody's PATH has the folders where these are. */
const folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]

function find(tool: Tool): string | undefined {
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

/** Refuses when a program is missing, by the names of the packages that have them. */
export function checkTools(): void {
  const missing = (Object.keys(packages) as Tool[]).filter((tool) => find(tool) === undefined)
  if (missing.length === 0) return
  throw new Fault("unsupported", `a network of its own needs ${missing.join(", ")}`, {
    hint: `apt-get install ${missing.map((tool) => packages[tool]).join(" ")}`,
  })
}

/** Runs one with a script on its stdin; `fd` is its descriptor 3. Rejects with what it said. */
export function run(tool: Tool, args: readonly string[], script: string, fd?: number): Promise<void> {
  const program = find(tool) ?? tool
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe", ...(fd === undefined ? [] : [fd])] })
    let said = ""
    child.stderr?.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)))
    const failed = (why: string, cause?: unknown): void =>
      reject(new Fault("unavailable", `the network could not be set up: ${tool} ${why}`, { cause }))
    child.once("error", (cause) => failed("cannot be run", cause))
    child.once("close", (code) => (code === 0 ? resolve() : failed(`failed: ${said.trim()}`)))
    // When it dies before it has read everything, its end tells why.
    child.stdin?.on("error", () => undefined)
    child.stdin?.end(script)
  })
}
