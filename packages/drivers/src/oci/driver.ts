import { createHash } from "node:crypto"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import type {
  Abilities,
  Command,
  Disk,
  Driver,
  Keeping,
  Layering,
  Probe,
  Sandbox,
  Snapshotting,
  WrittenLayer,
} from "../driver.ts"
import type { Operation } from "../init/operation.ts"
import { checkSpec, type SandboxId, type SandboxSpec, type SnapshotId } from "../sandbox-spec.ts"
import { openCgroups } from "./cgroup/open.ts"
import { readFacts } from "./facts.ts"
import { openGround } from "./ground.ts"
import { rangeSize } from "./id-ranges.ts"
import { diskOf } from "./disk.ts"
import { imagesFolderOf, writtenLayer } from "./lending.ts"
import { Launcher, type ProcessName, type StartRequest } from "./launcher.ts"
import { farewell, hold } from "./init-link.ts"
import { abilitiesOf, refuseWhatCannotBe, weaknesses, type Means } from "./means.ts"
import { measure } from "./measure.ts"
import { Bridge, type Connected } from "./network/bridge.ts"
import { readNetworkFacts } from "./network/network-facts.ts"
import { networkProbes } from "./network-probes.ts"
import { openOwners, ownIds } from "./owners.ts"
import { isInGroup, mapBaseOf, startTicksOf } from "./process.ts"
import { probes, volumeProbes } from "./probes.ts"
import { findRuntime, type Runtime } from "./runtime.ts"
import { OciSandbox } from "./sandbox.ts"
import { initCapabilityMask } from "./spec/capabilities.ts"
import { startRequest } from "./start-request.ts"
import { etcFiles } from "./spec/etc-files.ts"
import { maskedPaths } from "./spec/masks.ts"
import { Snapshots } from "./snapshots.ts"
import { Store, type Places, type Record } from "./store.ts"
import { straysOf } from "./strays.ts"
import { Turns } from "@warren/base/turns.ts"
import { shortfalls } from "./verify.ts"
import { openVolume } from "./volume.ts"

export interface OciOptions {
  /** Where the sandboxes are kept. One driver at a time. */
  readonly root: string
  /** The compiled C programs. */
  readonly programs: { readonly init: string; readonly launch: string; readonly libraries?: string | undefined }
  readonly runtime?: "crun" | "runc" | "runsc"
  readonly log: Log
  /** A cgroup made for this user, as a path below every hierarchy; only where we are not root. */
  readonly cgroupParent?: string | undefined
  /** How sandboxes are kept on the disk. Otherwise as well as this machine can. */
  readonly volume?: { readonly isPlain?: boolean; readonly firstBytes?: number } | undefined
  /** For tests: spoils what is asked of the launcher, to see that what comes of it is refused. */
  readonly spoil?: (request: StartRequest) => StartRequest
}

/** A sandbox that was just started knows more about itself than one that was found. */
interface Started extends ProcessName {
  readonly idmap?: { readonly lower: boolean }
}

interface Live {
  readonly sandbox: OciSandbox
  readonly process: ProcessName
  release(): void
}

const startMs = 15_000
const killMs = 10_000
const straysLooksMax = 20
/** How long a sandbox found running may take to answer before it counts as dead. */
const adoptMs = 5_000
const defaultGraceMs = 5_000

/** Opens the driver, or says what this machine lacks. */
export async function openOciDriver(options: OciOptions): Promise<OciDriver> {
  const runtime = findRuntime(options.runtime ?? "crun")
  const ids = ownIds()
  mkdirSync(options.root, { recursive: true, mode: 0o700 })
  await using scope = new Scope()
  scope.use(holdLock(join(options.root, "lock"), "a driver for these sandboxes"))
  const ground = scope.use(await openGround(options.root, { log: options.log, ...options.volume }))
  const launcher = scope.use(new Launcher(options.programs.launch, [options.root], options.log, ids))
  await launcher.hello()
  // One parent group per data folder: whatever is in it is ours, also after a crash.
  const hash = createHash("sha256").update(options.root).digest("hex").slice(0, 8)
  const parent = `warren-${hash}`
  const cgroups = openCgroups(parent, options.cgroupParent)
  scope.defer(() => cgroups.close())
  const volume = await openVolume(ground, launcher)
  const owners = openOwners(ids, launcher)
  const bridge = new Bridge(options.root, hash, launcher)
  return new OciDriver({ ...options, runtime, launcher, cgroups, volume, owners, bridge, scope: scope.move() })
}

interface DriverParts extends Omit<OciOptions, "runtime" | "volume">, Means {
  readonly runtime: Runtime
  readonly launcher: Launcher
  readonly bridge: Bridge
  readonly scope: Scope
}

/** Sandboxes made by an OCI runtime, inside namespaces that our launcher prepares. */
export class OciDriver implements Driver, Snapshotting, Layering, Keeping {
  readonly name = "oci"
  readonly abilities: Abilities
  readonly #parts: DriverParts
  readonly #store: Store
  readonly #snapshots: Snapshots
  readonly #live = new Map<SandboxId, Live>()
  /** Created by us and not started yet: their cgroups are there. */
  readonly #grouped = new Set<SandboxId>()
  readonly #turns = new Turns()

  constructor(parts: DriverParts) {
    this.#parts = parts
    this.#store = new Store(parts.volume.folder)
    this.#snapshots = new Snapshots(this.#store, parts.volume)
    this.abilities = abilitiesOf(parts)
    for (const id of this.#store.ids()) {
      const record = this.#store.record(id)
      if (record) parts.owners.ranges.keep(record.idBase)
      if (record?.slot !== undefined) parts.bridge.keep(record.slot)
    }
  }

  async probe(): Promise<readonly Probe[]> {
    const { cgroupParent, volume } = this.#parts
    const network = networkProbes(await readNetworkFacts())
    return [...probes(readFacts(cgroupParent)), ...network, ...volumeProbes(volume.notes)]
  }

  create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    return this.#turns.take(spec.id, async () => {
      signal.throwIfAborted()
      checkSpec(spec)
      const { volume, owners, bridge } = this.#parts
      const places = this.#store.places(spec.id)
      if (this.#store.has(spec.id))
        throw new Fault("conflict", "there is a sandbox with that id", { subject: `sandbox:${spec.id}` })
      refuseWhatCannotBe(spec, this.#parts)
      const slot = spec.network.mode === "bridge" ? { slot: bridge.take() } : {}
      const idBase = owners.take(spec.image)
      try {
        const layer = this.#layer(spec, idBase)
        // Half a millisecond of ours while the launcher does its part; the start would otherwise wait for it.
        this.#parts.cgroups.make(spec.id, spec.limits)
        this.#grouped.add(spec.id)
        await layer
        failpoint("driver/layered")
        // What the sandbox it begins with was running as is nothing of this one.
        if (spec.from) this.#store.clearRunning(spec.id)
        await owners.fill(places, spec, idBase)
        failpoint("driver/filled")
        this.#store.complete({ spec, idBase, ...slot }, writeEtc)
        failpoint("driver/recorded")
        signal.throwIfAborted()
      } catch (failure) {
        await this.#end(spec.id, undefined)
        await volume.remove(places.folder)
        owners.ranges.give(idBase)
        if (slot.slot !== undefined) await bridge.give(slot.slot)
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
      const { cgroups } = this.#parts
      const cgroup = this.#grouped.delete(id) ? cgroups.find(id) : cgroups.make(id, record.spec.limits)
      let process: ProcessName | undefined
      try {
        const request = this.#startRequest(record.spec, record.idBase, cgroup.folders)
        const { socket } = this.#store.places(id)
        let answer: Promise<Operation> | undefined
        const started = await this.#parts.launcher.start(request, () => {
          answer = hold(socket, signal)
          // Waited for below, unless the start fails first; then that is what is told.
          answer.catch(noop)
        })
        process = started
        failpoint("driver/launched")
        // Before it counts as running: one that is found running has its network.
        if (record.slot !== undefined) await this.#parts.bridge.connect(connected(record, record.slot), started)
        this.#store.setRunning(id, { pid: started.pid, startTicks: started.startTicks })
        failpoint("driver/running")
        const live = this.#liveOf(record, started, await (answer ?? hold(socket, signal)))
        const posture = measure(started.pid, cgroup, [])
        const expected = {
          spec: record.spec,
          idBase: record.idBase,
          gidBase: this.#parts.owners.gidBase(record.idBase),
          cgroupName: id,
          capabilitiesMax: initCapabilityMask,
          maskedPaths: presentMasks,
          isLimited: this.#parts.cgroups.missing === undefined,
        }
        const missing = shortfalls(posture, expected)
        if (missing.length > 0) {
          throw new Fault("unavailable", `the sandbox is not as isolated as asked for: ${missing.join("; ")}`)
        }
        signal.throwIfAborted()
        failpoint("driver/measured")
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
      if (live) await farewell(live.sandbox, graceMs)
      await this.#end(id, live?.process ?? this.#running(id))
    })
  }

  destroy(id: SandboxId): Promise<void> {
    return this.#turns.take(id, async () => {
      const { folder } = this.#store.places(id)
      const { volume } = this.#parts
      const record = this.#store.record(id)
      const process = this.#live.get(id)?.process ?? this.#running(id)
      if (volume.canRemoveInUse) await Promise.all([this.#end(id, process, record), volume.remove(folder)])
      else {
        await this.#end(id, process, record)
        await volume.remove(folder)
      }
      failpoint("driver/destroyed")
      if (record) this.#parts.owners.ranges.give(record.idBase)
      if (record?.slot !== undefined) await this.#parts.bridge.give(record.slot)
    })
  }

  snapshot(id: SandboxId, as: SnapshotId): Promise<void> {
    return this.#turns.take(id, () => {
      const { volume, cgroups } = this.#parts
      const take = (): Promise<void> => this.#snapshots.take(id, as)
      const live = this.#live.get(id)
      if (!live) return take()
      // A btrfs that is written to keeps a name of one moment with the bytes of another: a file that was just renamed may be empty.
      if (cgroups.missing === undefined) return live.sandbox.whilePaused(take)
      if (volume.copies === undefined) return take()
      throw new Fault("conflict", `while it runs it cannot be copied, and it cannot be paused: ${cgroups.missing}`, {
        hint: "stop it first",
        subject: `sandbox:${id}`,
      })
    })
  }

  get disk(): Disk {
    return diskOf(this.#parts.volume)
  }

  get imagesFolder(): string | undefined {
    return imagesFolderOf(this.#parts.volume)
  }

  get asKeeper(): ((argv: readonly string[]) => Command) | undefined {
    return this.#parts.owners.asKeeper
  }

  lendLayer<T>(id: SandboxId, work: (layer: WrittenLayer) => Promise<T>): Promise<T> {
    return this.#turns.take(id, async () => {
      if (this.#live.has(id)) throw new Fault("conflict", "the sandbox is running", { subject: `sandbox:${id}` })
      return await work(writtenLayer(id, this.#store, this.#parts.volume))
    })
  }

  removeSnapshot(id: SnapshotId): Promise<void> {
    return this.#snapshots.remove(id)
  }

  listSnapshots(): Promise<readonly SnapshotId[]> {
    return Promise.resolve(this.#snapshots.list())
  }

  async exists(id: SandboxId): Promise<boolean> {
    return this.#store.record(id) !== undefined
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
    const slots = this.#store.ids().map((id) => this.#store.record(id)?.slot)
    await this.#parts.bridge.sweep(slots.filter((slot) => slot !== undefined))
    await this.#snapshots.sweep()
  }

  /** Sandboxes go on; only this process's hold on them ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const live of this.#live.values()) live.release()
    this.#live.clear()
    await this.#parts.scope.close()
  }

  /** The folder of a new sandbox: empty, or with what a snapshot holds. */
  #layer(spec: SandboxSpec, idBase: number): Promise<void> {
    const { volume, owners } = this.#parts
    if (!spec.from) return volume.create(this.#store.places(spec.id).folder, spec.limits.diskBytes)
    return this.#snapshots.restore(spec.from, spec, (base) =>
      owners.isMapped ? undefined : { base: owners.launcherId(base), toBase: owners.launcherId(idBase) },
    )
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
        failpoint("driver/adopting")
        // Its runner may have died while it was paused; nobody else would ever thaw it.
        this.#parts.cgroups.find(id).thaw()
        const patience = AbortSignal.any([signal, AbortSignal.timeout(adoptMs)])
        if (record.slot !== undefined) await this.#parts.bridge.restore(connected(record, record.slot))
        const live = this.#liveOf(record, process, await hold(this.#store.places(id).socket, patience))
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
    const { folders } = this.#parts.cgroups.find(id)
    const isOurs =
      folders.length > 0 ? isInGroup(process.pid, folders) : mapBaseOf(process.pid) === this.#store.record(id)?.idBase
    return isOurs ? process : undefined
  }

  #liveOf({ spec, idBase }: Record, process: Started, held: Operation): Live {
    const { id } = spec
    const hasHostNetwork = spec.network.mode === "host"
    const { socket, folder } = this.#store.places(id)
    const diskUsage = (): Promise<number> => this.#parts.volume.usage(folder)
    const cgroup = this.#parts.cgroups.find(id, process.pid)
    const { owners } = this.#parts
    const isMapped = (process.idmap?.lower ?? owners.isMapped) || owners.fits(spec.image, idBase)
    const degraded = (): string[] => [
      ...weaknesses(this.#parts, idBase, isMapped),
      ...(hasHostNetwork ? ["it is on the host's network, and reaches whatever listens there"] : []),
    ]
    const ended = held.next().then(noop, noop)
    const sandbox = new OciSandbox({ id, process, socket, cgroup, diskUsage, degraded, hasHostNetwork, ended })
    return { sandbox, process, release: () => void held[Symbol.asyncDispose]() }
  }

  /** Everything of a running sandbox goes: processes, groups, socket. What it wrote stays. */
  async #end(id: SandboxId, process: ProcessName | undefined, known?: Record): Promise<void> {
    // What is in our groups need not be a sandbox; then there is no record to look for.
    const record = known ?? (this.#store.has(id) ? this.#store.record(id) : undefined)
    this.#grouped.delete(id)
    const cgroup = this.#parts.cgroups.find(id)
    try {
      // What is frozen does not die.
      cgroup.thaw()
    } catch {
      // There is no group any more.
    }
    await this.#parts.launcher.kill(process, cgroup.folders, killMs)
    failpoint("driver/killed")
    if (cgroup.folders.length === 0) await this.#endStrays(id)
    this.#live.get(id)?.release()
    this.#live.delete(id)
    if (record?.slot !== undefined) await this.#parts.bridge.disconnect(connected(record, record.slot))
    if (this.#store.has(id)) this.#store.clearRunning(id)
  }

  /** One that is just starting another is gone with the next look. */
  async #endStrays(id: SandboxId): Promise<void> {
    for (let looks = 0; looks < straysLooksMax; looks++) {
      const strays = straysOf(id)
      if (strays.length === 0) return
      for (const stray of strays) await this.#parts.launcher.kill(stray, [], killMs)
    }
    throw new Fault("internal", "processes of the sandbox do not end", { subject: `sandbox:${id}` })
  }

  #startRequest(spec: SandboxSpec, idBase: number, cgroups: readonly string[]) {
    const request = startRequest({
      spec,
      places: this.#store.places(spec.id),
      map: { base: this.#parts.owners.launcherId(idBase), size: rangeSize },
      idmap: this.#parts.owners.isMapped,
      userLimits: this.#parts.owners.userLimits,
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
const connected = ({ spec }: Record, slot: number): Connected => ({ slot, dns: spec.dns })
/** What this kernel does not have needs no mask. */
const presentMasks = maskedPaths.filter((path) => existsSync(path))

/** The files of a new sandbox that are ours. */
function writeEtc(places: Places, spec: SandboxSpec): void {
  mkdirSync(places.etc, { mode: 0o755, recursive: true })
  for (const [name, text] of Object.entries(etcFiles(spec.hostname, spec.dns))) {
    writeFileSync(join(places.etc, name), text, { mode: 0o644 })
  }
}
