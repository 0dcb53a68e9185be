import { spawn } from "node:child_process"
import { mkdir, readFile, stat, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { errnoOf, Fault } from "@warren/base/fault.ts"
import type { Ran, RunOptions, Workbench } from "../workbench.ts"

/** The same work on this machine, in a folder: for what needs no wall. */
export class HostWorkbench implements Workbench {
  readonly home: string
  readonly root: string
  readonly hasWorkspace: boolean
  readonly ran: string[][] = []
  env: Record<string, string> = {}

  constructor(home: string, workspace?: string) {
    this.home = home
    this.root = workspace ?? home
    this.hasWorkspace = workspace !== undefined
  }

  run(argv: readonly string[], { env, cwd, heard }: RunOptions, signal: AbortSignal): Promise<Ran> {
    this.ran.push([...argv])
    const [cmd = "", ...args] = argv
    const all = { PATH: process.env["PATH"], HOME: this.home, GIT_CONFIG_NOSYSTEM: "1", ...this.env, ...env }
    const child = spawn(cmd, args, {
      env: all,
      cwd: cwd ?? this.home,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    })
    const kill = (): void => void process.kill(-(child.pid ?? 0), "SIGKILL")
    signal.addEventListener("abort", kill, { once: true })
    const kept: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
    child.stdout.on("data", (piece: Buffer) => kept.stdout.push(piece))
    child.stderr.on("data", (piece: Buffer) => {
      kept.stderr.push(piece)
      heard?.(piece.toString())
    })
    return new Promise((resolve, reject) => {
      child.once("error", (cause) =>
        reject(new Fault(errnoOf(cause) === "ENOENT" ? "not_found" : "internal", cause.message, { cause })),
      )
      child.once("close", (code) => {
        signal.removeEventListener("abort", kill)
        if (signal.aborted) return reject(signal.reason)
        resolve({ code, stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr), isCut: false })
      })
    })
  }

  async write(path: string, content: Uint8Array): Promise<void> {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content, { mode: 0o600 })
  }

  async sizeOf(path: string): Promise<number> {
    try {
      return (await stat(path)).size
    } catch (cause) {
      throw new Fault("not_found", `there is no ${path}`, { cause })
    }
  }

  read(path: string): Promise<Buffer> {
    return readFile(path)
  }
}
