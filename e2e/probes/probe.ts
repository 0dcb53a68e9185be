import { execFile, spawn, type ChildProcess } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { readlinkSync, statSync } from "node:fs"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { networkInterfaces, tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Mount } from "@warren/drivers/sandbox-spec.ts"
import { buildProbe } from "./build.ts"

const run = promisify(execFile)

type Verdict = "OPEN" | "SHUT" | "ABSENT" | "HUNG"

export interface Finding {
  readonly id: string
  readonly verdict: Verdict
  readonly detail: string
}

const namespaces = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]

/** The program of attempts, compiled, and the canaries on this machine that it must not find. */
export class Probe implements AsyncDisposable {
  readonly path: string
  /** What it must know to recognise the host: its arguments. */
  readonly words: readonly string[]
  readonly #folder: string
  readonly #canaries: ChildProcess

  private constructor(folder: string, path: string, canaries: ChildProcess, words: readonly string[]) {
    this.#folder = folder
    this.path = path
    this.#canaries = canaries
    this.words = words
  }

  static async open(): Promise<Probe> {
    const folder = await mkdtemp(join(tmpdir(), "warren-probe-"))
    await chmod(folder, 0o755)
    const path = await buildProbe(folder)
    const mark = `canary-${randomBytes(6).toString("hex")}`
    const canaries = spawn(path, ["--canaries", mark], { stdio: ["pipe", "pipe", "inherit"] })
    return new Probe(folder, path, canaries, [...(await held(canaries)), ...hostWords()])
  }

  mount(to: string): Mount {
    return { from: this.path, to, isReadOnly: true }
  }

  /** As root of this machine, without a sandbox; only processes and mounts are its own, so that it can do no harm. */
  async outside(): Promise<readonly Finding[]> {
    const argv = [
      "--fork",
      "--pid",
      "--mount",
      "--mount-proc",
      "sh",
      "-c",
      '"$@"; exit',
      "sh",
      this.path,
      ...this.words,
    ]
    return parse((await run("unshare", argv, { env: { PATH: process.env["PATH"] } })).stdout)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#canaries, "close")
    this.#canaries.stdin?.end()
    await gone
    await rm(this.#folder, { recursive: true })
  }
}

/** What the program said, once it has said all of it. */
export function parse(output: string): readonly Finding[] {
  const lines = output.replaceAll("\r", "").trim().split("\n")
  if (lines.pop() !== "end|end|SHUT|") throw new Error(`the probe did not come to its end: ${output.slice(-500)}`)
  return lines.map((line) => {
    const [id = "", , verdict = "", ...detail] = line.split("|")
    return { id, verdict: verdict as Verdict, detail: detail.join("|") }
  })
}

/** The lines up to the empty one: by then everything is there to be found. */
async function held(canaries: ChildProcess): Promise<readonly string[]> {
  let said = ""
  for await (const chunk of canaries.stdout ?? []) {
    said += String(chunk)
    if (said.endsWith("\n\n")) return said.trim().split("\n")
  }
  throw new Error("the canaries could not be put out")
}

function hostWords(): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const own = addresses.find(({ family, internal }) => family === "IPv4" && !internal)
  return [
    ...namespaces.map((kind) => `${kind}=${readlinkSync(`/proc/self/ns/${kind}`)}`),
    `disk=${statSync("/").dev}`,
    ...(own ? [`address=${own.address}`] : []),
  ]
}

/** What a sandbox with the usual limits may have at most. */
export const usualLimits: readonly string[] = [
  ...["files=4096", "processes=528", "memlock=65536", "terminals=64", "sacrifice=500"],
  ...["max_user_namespaces=0", "max_inotify_instances=128", "max_inotify_watches=65536"],
  ...["bytes:/dev=65536", "inodes:/dev=256"],
  ...["bytes:/dev/shm=67108864", "inodes:/dev/shm=4096", "bytes:/tmp=67108864", "inodes:/tmp=16384"],
]
