import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { z } from "zod"
import type { Folder } from "./host-image.ts"
import { LauncherProcess } from "./launcher-process.ts"
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

/** The host's end of a sandbox's cable, and what its rules allow it by name. */
export interface LineRequest {
  readonly device: string
  /** Of nftables, with a set `resolvers`. */
  readonly table: string
  readonly resolvers: readonly string[]
}

const Started = z.object({
  pid: z.int().min(1),
  startTicks: z.string(),
  idmap: z.object({ lower: z.boolean(), upper: z.boolean() }),
})
/** Simple quotas count what a layer wrote, full ones all it holds. */
const Opened = z.object({ quota: z.enum(["simple", "full"]) })
const Usage = z.object({ bytes: z.number().min(0) })
/** A copy takes as long as there is to copy. */
const copyMs = 3_600_000

/**
 * The small C program that makes and removes sandboxes for us: it can do what Node cannot (namespaces, mounts, pidfds),
 * and its fork costs a tenth of a millisecond where Node's costs three. Should it die, whoever waits for an answer is told, and the next
 * request starts another: sandboxes do not need it to live.
 */
export class Launcher implements AsyncDisposable {
  readonly program: string
  readonly #begin: () => LauncherProcess
  readonly #log: Log
  #process: LauncherProcess | undefined
  #isClosed = false

  /** `roots`: the folders below which it may remove things. `ids`: those of an ordinary user. */
  constructor(program: string, roots: readonly string[], log: Log, ids?: SubordinateIds) {
    const own = ids ? ["--ids", `${ids.uid}:${ids.gid}:${ids.count}`] : []
    this.program = program
    this.#log = log
    this.#begin = () => new LauncherProcess(program, [...roots.flatMap((root) => ["--root", root]), ...own], log)
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
    await this.#askAgain({ op: "kill", ...name, cgroups, timeoutMs })
  }

  /** Prepares a btrfs for layers with limits; `unsupported` when it is not one. */
  async openVolume(path: string): Promise<z.output<typeof Opened>> {
    return Opened.parse(await this.#askAgain({ op: "volume.open", path }))
  }

  /** A subvolume that holds at most `bytesMax`; 0 is no limit. */
  async createLayer(path: string, bytesMax: number): Promise<void> {
    await this.#ask({ op: "layer.create", path, bytesMax })
  }

  /** As of the file system's last commit, at most half a minute ago. */
  async layerUsage(path: string): Promise<number> {
    return Usage.parse(await this.#askAgain({ op: "layer.usage", path })).bytes
  }

  /** A copy of a layer as it is now, in no time: what the two have in common is there once. */
  async snapshotLayer(from: string, to: string): Promise<void> {
    await this.#ask({ op: "layer.snapshot", from, to, bytesMax: 0, readOnly: true })
  }

  /** The same, to be changed by its owner; the limit is of what that one writes, or of all where quotas count all. */
  async cloneLayer(from: string, to: string, bytesMax = 0): Promise<void> {
    await this.#ask({ op: "layer.snapshot", from, to, bytesMax, readOnly: false })
  }

  /** The same on any file system, file by file. Ids of the one range become those of the other. */
  async copyTree(from: string, to: string, ids?: { readonly base: number; readonly toBase: number }): Promise<void> {
    await this.#ask({ op: "copy", from, to, ...ids, timeoutMs: copyMs })
  }

  async limitLayer(path: string, bytesMax: number): Promise<void> {
    await this.#askAgain({ op: "layer.limit", path, bytesMax })
  }

  async removeLayer(path: string): Promise<void> {
    await this.#askAgain({ op: "layer.remove", path })
  }

  /** Removes a folder with all that is in it, never through a link or into another mount. */
  async remove(path: string): Promise<void> {
    await this.#askAgain({ op: "remove", path })
  }

  /** Makes folders below `path`, owned by `base` plus their owner. */
  async makeFolders(path: string, base: number, folders: readonly Folder[]): Promise<void> {
    await this.#askAgain({ op: "folders", path, base, folders })
  }

  /** Bytes on disk of everything below a folder, also of what we may not read ourselves. */
  async usage(path: string): Promise<number> {
    return Usage.parse(await this.#askAgain({ op: "usage", path })).bytes
  }

  /** A pair of devices between the host and a running sandbox, with addresses, up, and a route out of it. */
  async connectNetwork(process: ProcessName, line: LineRequest & { gateway: string; address: string }): Promise<void> {
    await this.#ask({ op: "network.connect", pid: process.pid, startTicks: process.startTicks, ...line })
  }

  /** Already gone is fine. */
  async disconnectNetwork(line: LineRequest): Promise<void> {
    await this.#askAgain({ op: "network.disconnect", ...line })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#process?.[Symbol.asyncDispose]()
  }

  async #ask(request: object, listening = (): void => undefined): Promise<unknown> {
    return await this.#living().ask(request, listening)
  }

  /** For what may be done twice: should the process die over it, the next one is asked. */
  async #askAgain(request: object): Promise<unknown> {
    const process = this.#living()
    try {
      return await process.ask(request, () => undefined)
    } catch (failure) {
      if (!process.hasEnded) throw failure
      return await this.#ask(request)
    }
  }

  #living(): LauncherProcess {
    if (this.#isClosed) throw new Fault("unavailable", "the launcher was closed")
    if (this.#process?.hasEnded) {
      this.#log("warn", "launch.restarted")
      this.#process = undefined
    }
    this.#process ??= this.#begin()
    return this.#process
  }
}
