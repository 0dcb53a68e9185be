import { createHash } from "node:crypto"
import { chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import type { Abilities, Driver, Probe, Sandbox } from "../driver.ts"
import { Operation } from "../init/operation.ts"
import { checkSpec, type SandboxId, type SandboxSpec } from "../sandbox-spec.ts"
import type { Cgroups } from "./cgroup/cgroup.ts"
import { openCgroups } from "./cgroup/open.ts"
import { IdRanges, rangeSize } from "./id-ranges.ts"
import { Launcher, type ProcessName, type StartRequest } from "./launcher.ts"
import { measure } from "./measure.ts"
import { isInGroup, startTicksOf } from "./process.ts"
import { probes } from "./probes.ts"
import { findRuntime, type Runtime } from "./runtime.ts"
import { OciSandbox } from "./sandbox.ts"
import { initCapabilityMask } from "./spec/capabilities.ts"
import { layers, needsWorkspace, startRequest } from "./start-request.ts"
import { etcFiles } from "./spec/etc-files.ts"
import { maskedPaths } from "./spec/masks.ts"
import { Store, type Places } from "./store.ts"
import { Turns } from "./turns.ts"
import { shortfalls } from "./verify.ts"
import { openGround, openVolume, type Volume } from "./volume.ts"

export interface OciOptions {
  /** Where the sandboxes are kept. One driver at a time. */
  readonly root: string
  /** The compiled C programs. */
  readonly programs: { readonly init: string; readonly launch: string; readonly libraries?: string | undefined }
  readonly runtime?: "crun" | "runc" | "runsc"
  readonly log: Log
  /** For tests: spoils what is asked of the launcher, to see that what comes of it is refused. */
  readonly spoil?: (request: StartRequest) => StartRequest
}

interface Live {
  readonly sandbox: OciSandbox
  readonly process: ProcessName
  release(): void
}

/** The user that commands run as, inside. */
const userId = 1000
const startMs = 15_000
const killMs = 10_000
/** How long a sandbox found running may take to answer before it counts as dead. */
const adoptMs = 5_000
const defaultGraceMs = 5_000
/** What init itself may need beyond the grace to say goodbye. */
const farewellMs = 1_000

/** Opens the driver, or says what this machine lacks. */
export async function openOciDriver(options: OciOptions): Promise<OciDriver> {
  const runtime = findRuntime(options.runtime ?? "crun")
  mkdirSync(options.root, { recursive: true, mode: 0o700 })
  await using scope = new Scope()
  scope.use(holdLock(join(options.root, "lock"), "a driver for these sandboxes"))
  const ground = scope.use(await openGround(options.root))
  const launcher = scope.use(new Launcher(options.programs.launch, [options.root], options.log))
  await launcher.hello()
  // One parent group per data folder: whatever is in it is ours, also after a crash.
  const parent = `warren-${createHash("sha256").update(options.root).digest("hex").slice(0, 8)}`
  const cgroups = openCgroups(parent)
  scope.defer(() => cgroups.close())
  const volume = await openVolume(ground, launcher)
  return new OciDriver({ ...options, runtime, launcher, cgroups, volume, scope: scope.move() })
}

interface DriverParts extends Omit<OciOptions, "runtime"> {
  readonly runtime: Runtime
  readonly launcher: Launcher
  readonly cgroups: Cgroups
  readonly volume: Volume
  readonly scope: Scope
}

/** Sandboxes made by an OCI runtime, inside namespaces that our launcher prepares. */
export class OciDriver implements Driver {
  readonly name = "oci"
  readonly abilities: Abilities
  readonly #parts: DriverParts
  readonly #store: Store
  readonly #ranges = new IdRanges()
  readonly #live = new Map<SandboxId, Live>()
  readonly #turns = new Turns()

  constructor(parts: DriverParts) {
    this.#parts = parts
    this.#store = new Store(parts.volume.folder)
    const { unlimited } = parts.volume
    const reasons = unlimited === undefined ? {} : { diskLimit: unlimited }
    this.abilities = { pause: true, rootInside: true, diskLimit: unlimited === undefined, reasons }
    for (const id of this.#store.ids()) {
      const record = this.#store.record(id)
      if (record) this.#ranges.keep(record.idBase)
    }
  }

  probe(): Promise<readonly Probe[]> {
    return Promise.resolve(probes())
  }

  create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    return this.#turns.take(spec.id, async () => {
      signal.throwIfAborted()
      checkSpec(spec)
      const { volume } = this.#parts
      if (spec.limits.diskBytes > 0 && volume.unlimited !== undefined) {
        throw new Fault("unsupported", `the disk cannot be limited: ${volume.unlimited}`, {
          hint: "apt-get install btrfs-progs, or ask for diskBytes 0",
        })
      }
      const { folder } = this.#store.places(spec.id)
      if (this.#store.has(spec.id))
        throw new Fault("conflict", "there is a sandbox with that id", { subject: `sandbox:${spec.id}` })
      const idBase = this.#ranges.take()
      try {
        await volume.create(folder, spec.limits.diskBytes)
        this.#store.complete({ spec, idBase }, fill)
        signal.throwIfAborted()
      } catch (failure) {
        await volume.remove(folder)
        this.#ranges.give(idBase)
        throw failure
      }
    })
  }

  start(id: SandboxId, signal: AbortSignal): Promise<Sandbox> {
    return this.#turns.take(id, async () => {
      signal.throwIfAborted()
      const record = this.#store.record(id)
      if (!record) throw new Fault("not_found", "there is no such sandbox", { subject: `sandbox:${id}` })
      if (this.#live.has(id)) throw new Fault("conflict", "the sandbox is running", { subject: `sandbox:${id}` })
      const cgroup = this.#parts.cgroups.make(id, record.spec.limits)
      let process: ProcessName | undefined
      try {
        const request = this.#startRequest(record.spec, record.idBase, cgroup.folders)
        let hold: Promise<Operation> | undefined
        const started = await this.#parts.launcher.start(request, () => {
          hold = this.#hold(id, signal)
          // Waited for below, unless the start fails first; then that is what is told.
          hold.catch(noop)
        })
        process = started
        this.#store.setRunning(id, { pid: started.pid, startTicks: started.startTicks })
        const degraded = started.idmap.lower ? [] : ["files of the image look as if they were nobody's"]
        const live = this.#liveOf(id, started, degraded, await (hold ?? this.#hold(id, signal)))
        const posture = measure(started.pid, cgroup, degraded)
        const expected = {
          spec: record.spec,
          idBase: record.idBase,
          cgroupName: id,
          capabilitiesMax: initCapabilityMask,
          maskedPaths: presentMasks,
        }
        const missing = shortfalls(posture, expected)
        if (missing.length > 0) {
          throw new Fault("unavailable", `the sandbox is not as isolated as asked for: ${missing.join("; ")}`)
        }
        signal.throwIfAborted()
        this.#live.set(id, live)
        return live.sandbox
      } catch (failure) {
        await this.#end(id, process)
        throw failure
      }
    })
  }

  stop(id: SandboxId, graceMs = defaultGraceMs): Promise<void> {
    return this.#turns.take(id, async () => {
      const live = this.#live.get(id)
      if (live) await this.#farewell(live, graceMs)
      await this.#end(id, live?.process ?? this.#running(id))
    })
  }

  destroy(id: SandboxId): Promise<void> {
    return this.#turns.take(id, async () => {
      const { folder } = this.#store.places(id)
      const record = this.#store.record(id)
      await this.#end(id, this.#live.get(id)?.process ?? this.#running(id))
      if (this.#store.has(id)) await this.#parts.volume.remove(folder)
      if (record) this.#ranges.give(record.idBase)
    })
  }

  exists(id: SandboxId): Promise<boolean> {
    return Promise.resolve(this.#store.record(id) !== undefined)
  }

  async *adopt(signal: AbortSignal): AsyncGenerator<Sandbox, void, void> {
    for (const id of this.#store.ids()) {
      signal.throwIfAborted()
      if (this.#live.has(id)) continue
      const sandbox = await this.#turns.take(id, () => this.#adopt(id, signal))
      if (sandbox) yield sandbox
    }
    // Groups whose folder is gone: their maker died while taking it away.
    for (const name of this.#parts.cgroups.names()) {
      if (!this.#store.ids().includes(name as SandboxId)) await this.#end(name as SandboxId, undefined)
    }
  }

  /** Sandboxes go on; only this process's hold on them ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const live of this.#live.values()) live.release()
    this.#live.clear()
    await this.#parts.scope.close()
  }

  async #adopt(id: SandboxId, signal: AbortSignal): Promise<Sandbox | undefined> {
    const record = this.#store.record(id)
    if (!record) {
      await this.#end(id, undefined)
      await this.#parts.volume.remove(this.#store.places(id).folder)
      return undefined
    }
    const process = this.#running(id)
    try {
      if (process) {
        // Its runner may have died while it was paused; nobody else would ever thaw it.
        this.#parts.cgroups.find(id).thaw()
        const patience = AbortSignal.any([signal, AbortSignal.timeout(adoptMs)])
        const live = this.#liveOf(id, process, [], await this.#hold(id, patience))
        this.#live.set(id, live)
        return live.sandbox
      }
    } catch (failure) {
      this.#parts.log("warn", "sandbox.adopt", { sandbox: id, message: Fault.from(failure).message })
    }
    await this.#end(id, process)
    return undefined
  }

  /** Its init, if the one that was started is still there. */
  #running(id: SandboxId): ProcessName | undefined {
    const process = this.#store.running(id)
    if (!process || startTicksOf(process.pid) !== process.startTicks) return undefined
    return isInGroup(process.pid, this.#parts.cgroups.find(id).folders) ? process : undefined
  }

  /** A connection that stays open for as long as init lives: its answer is readiness, its end is death. */
  async #hold(id: SandboxId, signal: AbortSignal): Promise<Operation> {
    const hold = new Operation(await connectUnix(this.#store.places(id).socket, signal), { op: "hold" })
    const abort = (): void => void hold[Symbol.asyncDispose]()
    signal.addEventListener("abort", abort, { once: true })
    try {
      await hold.event("ok")
      return hold
    } catch (failure) {
      throw signal.aborted ? signal.reason : failure
    } finally {
      signal.removeEventListener("abort", abort)
    }
  }

  #liveOf(id: SandboxId, process: ProcessName, degraded: readonly string[], hold: Operation): Live {
    const { socket, folder } = this.#store.places(id)
    const diskUsage = (): Promise<number> => this.#parts.volume.usage(folder)
    const cgroup = this.#parts.cgroups.find(id)
    const ended = hold.next().then(noop, noop)
    const sandbox = new OciSandbox({ id, process, socket, cgroup, diskUsage, degraded, ended })
    return { sandbox, process, release: () => void hold[Symbol.asyncDispose]() }
  }

  async #farewell(live: Live, graceMs: number): Promise<void> {
    const patience = AbortSignal.timeout(graceMs + farewellMs)
    try {
      await live.sandbox.resume()
      await using stop = new Operation(await live.sandbox.connect(patience), { op: "stop", graceMs }, patience)
      await stop.event("ok")
      const late = new Promise<void>((resolve) => patience.addEventListener("abort", () => resolve(), { once: true }))
      await Promise.race([live.sandbox.ended, late])
    } catch {
      // It does not answer: what follows does not ask.
    }
  }

  /** Everything of a running sandbox goes: processes, groups, socket. What it wrote stays. */
  async #end(id: SandboxId, process: ProcessName | undefined): Promise<void> {
    const cgroup = this.#parts.cgroups.find(id)
    try {
      // What is frozen does not die.
      cgroup.thaw()
    } catch {
      // There is no group any more.
    }
    await this.#parts.launcher.kill(process, cgroup.folders, killMs)
    this.#live.get(id)?.release()
    this.#live.delete(id)
    if (this.#store.has(id)) this.#store.clearRunning(id)
  }

  #startRequest(spec: SandboxSpec, idBase: number, cgroups: readonly string[]) {
    const request = startRequest({
      spec,
      places: this.#store.places(spec.id),
      map: { base: idBase, size: rangeSize },
      cgroups,
      runtime: this.#parts.runtime,
      init: this.#parts.programs.init,
      libraries: this.#parts.programs.libraries,
      timeoutMs: startMs,
    })
    return this.#parts.spoil?.(request) ?? request
  }
}

const noop = (): void => undefined
/** What this kernel does not have needs no mask. */
const presentMasks = maskedPaths.filter((path) => existsSync(path))

/** The folders and files of a new sandbox. */
function fill(places: Places, spec: SandboxSpec): void {
  mkdirSync(places.data, { mode: 0o700 })
  for (const { upper, work } of layers(spec, places)) {
    mkdirSync(upper, { mode: 0o755 })
    mkdirSync(work, { mode: 0o700 })
  }
  if (needsWorkspace(spec)) {
    mkdirSync(places.workspace, { mode: 0o755 })
    chownSync(places.workspace, userId, userId)
  }
  mkdirSync(places.etc, { mode: 0o755 })
  for (const [name, text] of Object.entries(etcFiles(spec.hostname, spec.dns))) {
    writeFileSync(join(places.etc, name), text, { mode: 0o644 })
  }
}
