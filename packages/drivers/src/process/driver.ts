import { createHash } from "node:crypto"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import type { Abilities, Driver, Probe, Sandbox } from "../driver.ts"
import { Operation } from "../init/operation.ts"
import type { Cgroups } from "../oci/cgroup/cgroup.ts"
import { openCgroups } from "../oci/cgroup/open.ts"
import { IdRanges } from "../oci/id-ranges.ts"
import type { ProcessName } from "../oci/launcher.ts"
import { archOf } from "../oci/seccomp/syscalls.ts"
import { Store } from "../oci/store.ts"
import { Turns } from "@warren/base/turns.ts"
import { checkSpec, type Image, type SandboxId, type SandboxSpec } from "../sandbox-spec.ts"
import { startConfined, type Confined, type ConfineRequest } from "./confined.ts"
import { endGroups, endKeeper, endStrays, until } from "./ending.ts"
import { processFilter } from "./filter.ts"
import { canaryOf, checkRoot, fillFolder, removeFolder, type Owner } from "./folder.ts"
import { abilitiesIn, degradedIn, insecureTier, type Circumstances } from "./lacks.ts"
import { probes } from "./probes.ts"
import { descendants, isAlive, threadsOf } from "./process-tree.ts"
import { reachOf } from "./reach.ts"
import { ProcessSandbox } from "./sandbox.ts"
import { leaks, shortfalls } from "./verify.ts"
import { View } from "./view.ts"

export interface ProcessOptions {
  /** Where the sandboxes are kept. One driver at a time. */
  readonly root: string
  /** The compiled C programs. */
  readonly programs: { readonly init: string; readonly confine: string }
  /** Whether sandboxes may run where memory and cpu cannot be limited. Refused unless somebody says so. */
  readonly isUnlimitedAllowed?: boolean
  readonly log: Log
}

/** The only image there is: the machine itself. */
export const machineImage: Image = { layers: ["/"] }

interface Live {
  readonly sandbox: ProcessSandbox
  readonly keeper: ProcessName
  release(): void
}

const startMs = 15_000
const adoptMs = 5_000
const defaultGraceMs = 5_000
/** What init itself may need beyond the grace to say goodbye. */
const farewellMs = 1_000
const goneMs = 10_000
/** Of one file: what a disk limit would be, if there were one. */
const fileBytesMax = 16 * 1024 ** 3
/** Inside a range of ids, the one that runs things, as in every other driver. */
const userInRange = 1000

/** Opens the driver, or says what this machine lacks. */
export async function openProcessDriver(options: ProcessOptions): Promise<ProcessDriver> {
  const arch = archOf(process.arch)
  if (!arch) throw new Fault("unsupported", `there is no system call filter for ${process.arch}`)
  const [uid = 0, gid = 0] = [process.getuid?.(), process.getgid?.()]
  const isPerson = uid !== 0
  mkdirSync(options.root, { recursive: true, mode: 0o711 })
  checkRoot(options.root, isPerson)
  await using scope = new Scope()
  scope.use(holdLock(join(options.root, "lock"), "a driver for these sandboxes"))
  const { cgroups, noCgroups } = cgroupsFor(options.root)
  if (noCgroups !== undefined && options.isUnlimitedAllowed !== true) {
    throw new Fault("unavailable", `memory and cpu cannot be limited: ${noCgroups}`, {
      hint: "run as root, have a cgroup delegated to this user, or allow unlimited sandboxes",
    })
  }
  scope.defer(() => cgroups?.close())
  options.log("warn", insecureTier, {
    message: "THE PROCESS DRIVER IS FOR DEVELOPMENT ONLY: its sandboxes are confined processes of this machine",
    uid: isPerson ? uid : null,
    limits: noCgroups === undefined,
  })
  const circumstances = { isPerson, noCgroups }
  const filter = processFilter(isPerson, arch)
  return new ProcessDriver({ ...options, cgroups, circumstances, person: { uid, gid }, filter, scope: scope.move() })
}

/** One parent group per data folder: whatever is in it is ours, also after a crash. */
function cgroupsFor(root: string): { cgroups: Cgroups | undefined; noCgroups: string | undefined } {
  try {
    const parent = `warren-${createHash("sha256").update(root).digest("hex").slice(0, 8)}`
    const cgroups = openCgroups(parent)
    return cgroups.missing === undefined
      ? { cgroups, noCgroups: undefined }
      : { cgroups: undefined, noCgroups: cgroups.missing }
  } catch (failure) {
    return { cgroups: undefined, noCgroups: messageOf(failure) }
  }
}

interface DriverParts extends ProcessOptions {
  readonly cgroups: Cgroups | undefined
  readonly circumstances: Circumstances
  readonly person: Owner
  readonly filter: Buffer
  readonly scope: Scope
}

/** Sandboxes that are trees of confined processes, for development on machines where nothing else works. */
export class ProcessDriver implements Driver {
  readonly name = "process"
  readonly machineImage = machineImage
  readonly abilities: Abilities
  readonly #parts: DriverParts
  readonly #store: Store
  readonly #ranges = new IdRanges()
  readonly #live = new Map<SandboxId, Live>()
  readonly #turns = new Turns()

  constructor(parts: DriverParts) {
    this.#parts = parts
    this.#store = new Store(parts.root)
    this.abilities = abilitiesIn(parts.circumstances)
    for (const id of this.#store.ids()) {
      const record = this.#store.record(id)
      if (record) this.#ranges.keep(record.idBase)
    }
  }

  probe(): Promise<readonly Probe[]> {
    return probes(this.#parts.programs.confine, this.#parts.circumstances.noCgroups)
  }

  create(spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    return this.#turns.take(spec.id, async () => {
      signal.throwIfAborted()
      checkSpec(spec)
      if (this.#store.has(spec.id))
        throw new Fault("conflict", "there is a sandbox with that id", { subject: `sandbox:${spec.id}` })
      this.#checkAbilities(spec)
      const idBase = this.#ranges.take()
      try {
        this.#store.complete({ spec, idBase }, (places) => fillFolder(places, this.#owner(idBase)))
        failpoint("confine/recorded")
        signal.throwIfAborted()
      } catch (failure) {
        await removeFolder(this.#store.places(spec.id).folder)
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
      const { spec, idBase } = record
      try {
        const cgroup = this.#parts.cgroups?.make(id, spec.limits)
        const { keeper, init, hold } = await this.#confine(spec, idBase, cgroup?.folders ?? [], signal)
        const live = this.#liveOf(id, keeper, init, hold)
        try {
          await this.#verify(live.sandbox, spec, idBase)
          signal.throwIfAborted()
        } catch (failure) {
          live.release()
          throw failure
        }
        this.#live.set(id, live)
        this.#parts.log("warn", insecureTier, { sandbox: id, pid: init.pid })
        return live.sandbox
      } catch (failure) {
        await this.#end(id, idBase, this.#store.running(id))
        throw failure
      }
    })
  }

  stop(id: SandboxId, graceMs = defaultGraceMs): Promise<void> {
    return this.#turns.take(id, async () => {
      const live = this.#live.get(id)
      if (live) await this.#farewell(live, graceMs)
      await this.#end(id, this.#store.record(id)?.idBase, live?.keeper ?? this.#store.running(id))
    })
  }

  destroy(id: SandboxId): Promise<void> {
    return this.#turns.take(id, async () => {
      const record = this.#store.record(id)
      await this.#end(id, record?.idBase, this.#live.get(id)?.keeper ?? this.#store.running(id))
      failpoint("confine/ended")
      if (this.#store.has(id)) await removeFolder(this.#store.places(id).folder)
      if (record) this.#ranges.give(record.idBase)
    })
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
    for (const name of this.#parts.cgroups?.names() ?? []) {
      if (!this.#store.ids().includes(name as SandboxId)) await this.#end(name as SandboxId, undefined, undefined)
    }
  }

  /** Sandboxes go on; only this process's hold on them ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const live of this.#live.values()) live.release()
    this.#live.clear()
    await this.#parts.scope.close()
  }

  #checkAbilities(spec: SandboxSpec): void {
    const { reasons } = this.abilities
    if (spec.limits.diskBytes > 0) {
      throw new Fault("unsupported", `the disk cannot be limited: ${reasons["diskLimit"]}`, {
        hint: "ask for diskBytes 0",
      })
    }
    if (spec.network.mode !== "none") {
      throw new Fault("unsupported", `the network "${spec.network.mode}" cannot be had: ${reasons["network"]}`, {
        hint: 'ask for the network "none", or use the driver oci',
      })
    }
    if (spec.from) throw new Fault("unsupported", `there are no snapshots: ${reasons["snapshot"]}`)
    if (spec.mounts.length > 0) throw new Fault("unsupported", `nothing can be mounted: ${reasons["mounts"]}`)
    const missing = spec.image.layers.find((layer) => !existsSync(layer))
    if (missing !== undefined) throw new Fault("not_found", `there is no image layer ${missing}`)
    if (spec.image.layers.length !== 1 || spec.image.layers[0] !== machineImage.layers[0] || spec.image.grafts) {
      throw new Fault("unsupported", "this driver has no image but the machine itself", { hint: "use machineImage" })
    }
  }

  /** Started, written down, and kept, in this order: whoever dies in between leaves nothing that cannot be found. */
  async #confine(spec: SandboxSpec, idBase: number, cgroups: readonly string[], signal: AbortSignal) {
    let hold: Promise<Operation> | undefined
    const onListening = (): void => {
      hold = this.#hold(spec.id, signal)
      // Waited for below, unless the start fails first; then that is what is told.
      hold.catch(noop)
    }
    const confined: Confined = await startConfined(this.#request(spec, idBase, cgroups), onListening, signal)
    try {
      const held = await (hold ?? this.#hold(spec.id, signal))
      failpoint("confine/started")
      this.#store.setRunning(spec.id, confined.keeper)
      failpoint("confine/running")
      confined.keep()
      return { ...confined, hold: held }
    } catch (failure) {
      await confined.abandon()
      throw failure
    }
  }

  #request(spec: SandboxSpec, idBase: number, cgroups: readonly string[]): ConfineRequest {
    const places = this.#store.places(spec.id)
    const view = new View(places)
    const { programs, filter, circumstances } = this.#parts
    const owner = this.#owner(idBase)
    return {
      program: programs.confine,
      init: programs.init,
      socket: places.socket,
      workspace: view.workspace,
      ...owner,
      cgroups,
      openFilesMax: spec.limits.openFilesMax,
      processesMax: this.#processesMax(spec, owner.uid),
      fileBytesMax,
      reach: reachOf(view.folders, !circumstances.isPerson),
      filter,
      timeoutMs: startMs,
    }
  }

  /** With a cgroup that counts exactly, the user's own limit is only there in case; a person has other processes, too. */
  #processesMax({ limits }: SandboxSpec, uid: number): number {
    if (this.#parts.cgroups) return limits.pidsMax * 2 + threadsOf(uid)
    return limits.pidsMax + threadsOf(uid)
  }

  async #verify(sandbox: ProcessSandbox, spec: SandboxSpec, idBase: number): Promise<void> {
    const { circumstances, cgroups } = this.#parts
    const missing = shortfalls(await sandbox.posture(), {
      uid: this.#owner(idBase).uid,
      isPerson: circumstances.isPerson,
      cgroupName: cgroups && spec.id,
      limits: spec.limits,
    })
    const found = [...missing, ...(await leaks(sandbox, canaryOf(this.#store.places(spec.id))))]
    if (found.length > 0) {
      throw new Fault("unavailable", `the sandbox is not as isolated as asked for: ${found.join("; ")}`)
    }
  }

  async #adopt(id: SandboxId, signal: AbortSignal): Promise<Sandbox | undefined> {
    const record = this.#store.record(id)
    const keeper = this.#store.running(id)
    try {
      // While init lives it is the keeper's only child.
      const init =
        keeper && isAlive(keeper) ? descendants(keeper.pid).find((one) => one.parent === keeper.pid) : undefined
      if (record && keeper && init) {
        // Its runner may have died while it was paused; nobody else would ever thaw it.
        this.#parts.cgroups?.find(id).thaw()
        const patience = AbortSignal.any([signal, AbortSignal.timeout(adoptMs)])
        const live = this.#liveOf(id, keeper, init, await this.#hold(id, patience))
        this.#live.set(id, live)
        this.#parts.log("warn", insecureTier, { sandbox: id, pid: init.pid })
        return live.sandbox
      }
    } catch (failure) {
      this.#parts.log("warn", "sandbox.adopt", { sandbox: id, message: Fault.from(failure).message })
    }
    await this.#end(id, record?.idBase, keeper)
    // Without a record it was being made when its maker died.
    if (!record) await removeFolder(this.#store.places(id).folder)
    return undefined
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

  #liveOf(id: SandboxId, keeper: ProcessName, { pid, startTicks }: ProcessName, hold: Operation): Live {
    const places = this.#store.places(id)
    const isGone = (): boolean => !isAlive(keeper)
    // init's end is seen at once; the keeper then ends what init left, and that is the sandbox's end.
    const ended = hold.next().then(noop, () => until(isGone, goneMs).then(noop))
    const sandbox = new ProcessSandbox({
      id,
      keeper,
      init: { pid, startTicks },
      socket: places.socket,
      data: places.data,
      view: new View(places),
      cgroup: this.#parts.cgroups?.find(id),
      degraded: degradedIn(this.#parts.circumstances),
      ended,
    })
    return { sandbox, keeper, release: () => void hold[Symbol.asyncDispose]() }
  }

  async #farewell({ sandbox }: Live, graceMs: number): Promise<void> {
    const patience = AbortSignal.timeout(graceMs + farewellMs)
    try {
      if (this.abilities.pause) await sandbox.resume()
      await using stop = new Operation(await sandbox.connect(patience), { op: "stop", graceMs }, patience)
      await stop.event("ok")
      const late = new Promise<void>((resolve) => patience.addEventListener("abort", () => resolve(), { once: true }))
      await Promise.race([sandbox.ended, late])
    } catch {
      // It does not answer: what follows does not ask.
    }
  }

  /** Everything of a running sandbox goes: processes, groups, socket. What it wrote stays. */
  async #end(id: SandboxId, idBase: number | undefined, keeper: ProcessName | undefined): Promise<void> {
    const cgroup = this.#parts.cgroups?.find(id)
    try {
      // What is frozen does not die.
      cgroup?.thaw()
    } catch {
      // There is no group any more.
    }
    const isEnded = keeper !== undefined && (await endKeeper(keeper))
    if (!isEnded && idBase !== undefined) {
      const { isPerson } = this.#parts.circumstances
      await endStrays({ uid: this.#owner(idBase).uid, isPerson, folder: this.#store.places(id).folder })
    }
    await endGroups(cgroup?.folders ?? [])
    this.#live.get(id)?.release()
    this.#live.delete(id)
    if (this.#store.has(id)) this.#store.clearRunning(id)
  }

  /** A uid that nobody else has, where we may give one; otherwise our own, never root. */
  #owner(idBase: number): Owner {
    if (this.#parts.circumstances.isPerson) return this.#parts.person
    return { uid: idBase + userInRange, gid: idBase + userInRange }
  }
}

const noop = (): void => undefined
