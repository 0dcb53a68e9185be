import type { Duplex } from "node:stream"
import type { Posture } from "./posture.ts"
import type { Image, SandboxId, SandboxSpec, SnapshotId } from "./sandbox-spec.ts"

export type DriverName = "process" | "oci" | "docker" | "microvm" | "kubernetes"

/** What a driver can do beyond running a sandbox. A missing ability comes with its reason. */
export interface Abilities {
  readonly pause: boolean
  readonly snapshot?: boolean
  readonly rootInside: boolean
  readonly diskLimit: boolean
  /** Why each missing one is missing. */
  readonly reasons: Readonly<Record<string, string>>
}

/** What a sandbox has beyond that, unless its driver says under the same name in `reasons` why not. */
export type Usual =
  /** Its own process list, mounts, ids, host name and paths: `/workspace` is there under that name. */
  | "namespaces"
  | "mounts"
  /** Of memory, cpu and processes. */
  | "limits"
  | "terminals"
  /** Programs inside may listen, and are reached by connecting inside. */
  | "ports"
  /** The capability bounding set of commands is empty. */
  | "boundingSet"
  /** Programs inside may change the modes of their files. */
  | "modes"
  /** Strong enough a wall for an agent with a shell, or with a browser. */
  | "shellTools"
  | "browserTools"

/** Why a driver's sandboxes lack something that is usual; undefined when they have it. */
export function lackOf(driver: Driver, usual: Usual): string | undefined {
  return driver.abilities.reasons[usual]
}

/** One precondition on this machine. */
export interface Probe {
  readonly name: string
  readonly isMet: boolean
  readonly detail: string
  /** The command that would meet it. */
  readonly fix?: string
  /** What is lost without it; absent where nothing works without it. */
  readonly without?: string
}

/** One way of making sandboxes. */
export interface Driver extends AsyncDisposable {
  readonly name: DriverName
  readonly abilities: Abilities
  /** The machine itself, where this driver has it in a way of its own. */
  readonly machineImage?: Image
  /** What works on this machine, in the order it bites. */
  probe(): Promise<readonly Probe[]>
  /** Prepares everything that outlives a start. Aborted or failed, it leaves nothing. */
  create(spec: SandboxSpec, signal: AbortSignal): Promise<void>
  /** Resolves when init has answered and the posture is what was asked for. Legal when created or stopped. */
  start(id: SandboxId, signal: AbortSignal): Promise<Sandbox>
  /** TERM, grace, KILL of everything. What was written stays; it can be started again. Idempotent. */
  stop(id: SandboxId, graceMs?: number): Promise<void>
  /** Leaves nothing behind, at whatever moment it is called. Idempotent. */
  destroy(id: SandboxId): Promise<void>
  exists(id: SandboxId): Promise<boolean>
  /** Sandboxes that outlived the previous runner process; what it left half-made is finished or removed on the way. */
  adopt(signal: AbortSignal): AsyncIterable<Sandbox>
}

/** A running sandbox. */
export interface Sandbox {
  readonly id: SandboxId
  /** Resolves when it has ended, however it ended. */
  readonly ended: Promise<void>
  /** What the kernel says of init at this moment, which costs next to nothing: it has not ended and was not stopped. */
  isRunning(): boolean
  /** A new connection to init: one operation. */
  connect(signal?: AbortSignal): Promise<Duplex>
  posture(): Promise<Posture>
  stats(): Promise<SandboxStats>
  /** Processes the kernel killed for want of memory, since the start. Cheap: read when an exit needs explaining. */
  oomKills(): number
}

export interface Pausable {
  pause(): Promise<void>
  resume(): Promise<void>
}

/** Freezing what a sandbox has written, running or not, so that others can begin with it (`SandboxSpec.from`). */
export interface Snapshotting {
  /**
   * Everything the sandbox has written, as it is at one moment; the sandbox goes on. Costs the same at any size, unless
   * `reasons.snapshotCost` says otherwise.
   */
  snapshot(id: SandboxId, as: SnapshotId): Promise<void>
  /** Idempotent. At any time: whoever began with it has its own. */
  removeSnapshot(id: SnapshotId): Promise<void>
  /** All there are: whoever took them may have died before it was told. */
  listSnapshots(): Promise<readonly SnapshotId[]>
}

export function canSnapshot(driver: Driver): driver is Driver & Snapshotting {
  return driver.abilities.snapshot === true && "snapshot" in driver
}

export type Command = readonly [program: string, ...args: string[]]

/** Lending out what a stopped sandbox has written, so that an image can be made of it. */
export interface Layering {
  /** Where images are best kept: what is there and what sandboxes write can share bytes. Undefined where nothing can. */
  readonly imagesFolder: string | undefined
  /**
   * How a program is run that keeps images: for it, owners of files are those inside of sandboxes, and it may give files to all of them.
   * Undefined where every program of ours may.
   */
  readonly asKeeper?: ((argv: readonly string[]) => Command) | undefined
  /** The sandbox can be neither started nor destroyed before `work` is done. `conflict` while it runs. */
  lendLayer<T>(id: SandboxId, work: (layer: WrittenLayer) => Promise<T>): Promise<T>
}

/** What the root of a sandbox has written: an overlay's upper folder, with owners as they are inside. */
export interface WrittenLayer {
  readonly folder: string
  /** What it lies on. */
  readonly image: Image
  /**
   * The layer once more, without its bytes being copied: makes the folder `to`, to be taken away by the caller, and says where in
   * it the layer is. Undefined where it would have to be copied: then `to` is not there.
   */
  cloneTo(to: string): Promise<string | undefined>
}

export function canLendLayers(driver: Driver): driver is Driver & Layering {
  return "lendLayer" in driver
}

/** A disk for folders that outlive sandboxes and are mounted in them. */
export interface Disk {
  /** Where they go. */
  readonly folder: string
  /** Why a folder's size cannot be limited here; undefined when it can. */
  readonly unlimited: string | undefined
  create(path: string, bytesMax: number): Promise<void>
  usage(path: string): Promise<number>
  remove(path: string): Promise<void>
}

/** Keeping folders where sandboxes keep theirs. */
export interface Keeping {
  readonly disk: Disk
}

export function hasDisk(driver: Driver): driver is Driver & Keeping {
  return "disk" in driver
}

export function canPause(driver: Driver, sandbox: Sandbox): sandbox is Sandbox & Pausable {
  return driver.abilities.pause && "pause" in sandbox
}

export interface SandboxStats {
  readonly memoryBytes: number
  readonly memoryPeakBytes: number
  readonly cpuUs: number
  readonly pids: number
  readonly diskBytes: number
  readonly receivedBytes: number
  readonly sentBytes: number
  /** Processes the kernel killed because memory ran out, since the start. */
  readonly oomKills: number
  /** Forks refused because of the pids limit, since the start. */
  readonly pidsRefused: number
}
