import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { Fault, type FaultCode } from "@warren/base/fault.ts"
import { decodeJson, encodeJson, FrameDecoder } from "@warren/base/frame.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"
import type { Folder } from "./host-image.ts"
import type { SubordinateIds } from "./subordinate-ids.ts"

/** A process, named so that a recycled pid is never taken for it. */
export interface ProcessName {
  readonly pid: number
  /** When it started, in the kernel's ticks. */
  readonly startTicks: string
}

export interface StartRequest {
  /** Image layers, the top one first. */
  readonly lowers: readonly string[]
  readonly upper: string
  readonly work: string
  readonly overlays: readonly OverlayRequest[]
  readonly binds: readonly BindRequest[]
  readonly map: { readonly base: number; readonly size: number }
  readonly cgroups: readonly string[]
  readonly socket: string
  /** The text of the OCI runtime's config.json; it is never written where somebody else could read it. */
  readonly config: string
  readonly runtime: readonly string[]
  /** Stand-ins for libraries the runtime links and does not need; its start is a fifth shorter with them. */
  readonly libraries?: string
  /** Limits of the new user namespace, by their names in /proc/sys/user. */
  readonly userLimits: Readonly<Record<string, number>>
  /** Owners as they are on disk; false where the kernel does not let us map them. */
  readonly idmap: boolean
  readonly timeoutMs: number
}

/** One more overlay, over a folder of the root. */
export interface OverlayRequest {
  readonly to: string
  readonly lowers: readonly string[]
  /** Beside the root's own. */
  readonly upper: string
  readonly work: string
  readonly readOnly: boolean
}

export interface BindRequest {
  readonly from: string
  readonly to: string
  readonly readOnly: boolean
  readonly idmap: boolean
}

const Started = z.object({
  pid: z.int().min(1),
  startTicks: z.string(),
  idmap: z.object({ lower: z.boolean(), upper: z.boolean() }),
})
const Usage = z.object({ bytes: z.number().min(0) })
const Failure = z.object({
  step: z.string(),
  errno: z.string().nullish(),
  message: z.string(),
  stderr: z.string().optional(),
})
const Answer = z.object({ id: z.int().nullable(), ok: z.unknown().optional(), fault: Failure.optional() })
const Listening = z.object({ event: z.literal("listening"), id: z.int() })

/** Of its last words. */
const saidBytesMax = 1_000

interface Waiting {
  resolve(value: unknown): void
  reject(fault: Fault): void
  listening(): void
}

/**
 * The small C program that makes and removes sandboxes for us: it can do what Node cannot (namespaces, mounts, pidfds),
 * and its fork costs a tenth of a millisecond where Node's costs three.
 */
export class Launcher implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #decoder = new FrameDecoder()
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #ended: Fault | undefined

  /** `roots`: the folders below which it may remove things. `ids`: those of an ordinary user. */
  constructor(program: string, roots: readonly string[], log: Log, ids?: SubordinateIds) {
    const own = ids ? ["--ids", `${ids.uid}:${ids.gid}:${ids.count}`] : []
    this.#child = spawn(program, [...roots.flatMap((root) => ["--root", root]), ...own], {
      stdio: ["pipe", "pipe", "pipe"],
    })
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk))
    let said = ""
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-saidBytesMax)
      log("warn", "launch.stderr", { text: chunk.toString() })
    })
    // A write after it died fails here; its end is told by `exit`.
    this.#child.stdin?.on("error", () => undefined)
    this.#child.once("error", (cause) => {
      this.#end(new Fault("unavailable", `cannot run ${program}`, { cause, hint: "build it with: npm run build" }))
    })
    // Not before all it said has been read.
    this.#child.once("close", (code, signal) => {
      const why = said === "" ? "" : `: ${said.trim()}`
      this.#end(
        new Fault("unavailable", `the launcher ended (${signal ?? code})${why}`, { hint: "see: npm run doctor" }),
      )
    })
  }

  /** Resolves when it runs and answers. */
  async hello(): Promise<void> {
    await this.#ask({ op: "hello" })
  }

  /** `onListening`: init's socket is there; whoever connects now is answered the moment init runs. */
  async start(request: StartRequest, onListening: () => void): Promise<z.output<typeof Started>> {
    return Started.parse(await this.#ask({ op: "start", ...request }, onListening))
  }

  /** Kills it and everything in its groups, and removes the groups. Already gone is fine. */
  async kill(name: ProcessName | undefined, cgroups: readonly string[], timeoutMs: number): Promise<void> {
    await this.#ask({ op: "kill", ...name, cgroups, timeoutMs })
  }

  /** Prepares a btrfs for layers with limits; `unsupported` when it is not one. */
  async openVolume(path: string): Promise<void> {
    await this.#ask({ op: "volume.open", path })
  }

  /** A subvolume that holds at most `bytesMax`; 0 is no limit. */
  async createLayer(path: string, bytesMax: number): Promise<void> {
    await this.#ask({ op: "layer.create", path, bytesMax })
  }

  /** As of the file system's last commit, at most half a minute ago. */
  async layerUsage(path: string): Promise<number> {
    return Usage.parse(await this.#ask({ op: "layer.usage", path })).bytes
  }

  /** A copy of a layer as it is now, in no time: what the two have in common is there once. */
  async snapshotLayer(from: string, to: string): Promise<void> {
    await this.#ask({ op: "layer.snapshot", from, to, bytesMax: 0, readOnly: true })
  }

  async limitLayer(path: string, bytesMax: number): Promise<void> {
    await this.#ask({ op: "layer.limit", path, bytesMax })
  }

  async removeLayer(path: string): Promise<void> {
    await this.#ask({ op: "layer.remove", path })
  }

  /** Removes a folder with all that is in it, never through a link or into another mount. */
  async remove(path: string): Promise<void> {
    await this.#ask({ op: "remove", path })
  }

  /** Makes folders below `path`, owned by `base` plus their owner. */
  async makeFolders(path: string, base: number, folders: readonly Folder[]): Promise<void> {
    await this.#ask({ op: "folders", path, base, folders })
  }

  /** Bytes on disk of everything below a folder, also of what we may not read ourselves. */
  async usage(path: string): Promise<number> {
    return Usage.parse(await this.#ask({ op: "usage", path })).bytes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return
    const gone = once(this.#child, "exit")
    this.#child.stdin?.end()
    const force = setTimeout(() => this.#child.kill("SIGKILL"), 5_000)
    await gone
    clearTimeout(force)
  }

  #ask(request: object, listening = (): void => undefined): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended)
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, listening })
      this.#child.stdin?.write(encodeJson({ id, ...request }))
    })
  }

  #receive(chunk: Buffer): void {
    try {
      this.#decoder.push(chunk, (body) => this.#answer(decodeJson(body)))
    } catch (cause) {
      this.#child.kill("SIGKILL")
      this.#end(new Fault("internal", "the launcher does not make sense", { cause }))
    }
  }

  #answer(message: unknown): void {
    const event = Listening.safeParse(message)
    if (event.success) return this.#waiting.get(event.data.id)?.listening()
    const { id, ok, fault } = Answer.parse(message)
    const waiting = this.#waiting.get(id ?? 0)
    this.#waiting.delete(id ?? 0)
    if (fault) waiting?.reject(faultOf(fault))
    else waiting?.resolve(ok)
  }

  #end(fault: Fault): void {
    this.#ended ??= fault
    for (const waiting of this.#waiting.values()) waiting.reject(fault)
    this.#waiting.clear()
  }
}

/** What a person can do about each step that can fail. */
const hints: Readonly<Record<string, string>> = {
  runtime: "the OCI runtime said this; warren doctor checks what it needs",
  exec: "install it: apt-get install crun",
  cgroup: "limits need a writable cgroup: run as root, or have one delegated to this user",
}

const codes: Readonly<Record<string, FaultCode>> = {
  ENOENT: "not_found",
  EINVAL: "invalid",
  ENOTDIR: "invalid",
  ELOOP: "invalid",
  ENAMETOOLONG: "invalid",
  EEXIST: "conflict",
  ENOTSUP: "unsupported",
  EOPNOTSUPP: "unsupported",
  ENOSPC: "limit",
  EDQUOT: "limit",
  EAGAIN: "limit",
}

function faultOf(failure: z.output<typeof Failure>): Fault {
  const code = codes[failure.errno ?? ""] ?? "unavailable"
  const said = failure.stderr ? `: ${failure.stderr.trim().split("\n").at(-1)}` : ""
  const errno = failure.errno ? ` (${failure.errno})` : ""
  return new Fault(code, `the launcher failed at step ${failure.step}: ${failure.message}${errno}${said}`, {
    hint: hints[failure.step],
  })
}
