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

/** Freezing what a sandbox has written, running or not, so that others can start from it. */
export interface Snapshotting {
  /** An image of the sandbox as it is at this moment; the sandbox goes on. Costs the same at any size. */
  snapshot(id: SandboxId, as: SnapshotId): Promise<Image>
  /** Idempotent. `conflict` while a sandbox stands on it. */
  removeSnapshot(id: SnapshotId): Promise<void>
}

export function canSnapshot(driver: Driver): driver is Driver & Snapshotting {
  return driver.abilities.snapshot === true && "snapshot" in driver
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
