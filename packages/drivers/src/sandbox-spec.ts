import { Fault } from "@warren/base/fault.ts"
import type { Id } from "@warren/base/id.ts"

export type SandboxId = Id<"sbx">
export type SnapshotId = Id<"snp">

/** `strict`: nobody is root inside. `dev`: the person may be, with the few capabilities package managers need. */
export type Profile = "strict" | "dev"

export interface Limits {
  readonly cpus: number
  readonly memoryBytes: number
  readonly pidsMax: number
  readonly openFilesMax: number
  /** Of everything it writes. 0 asks for no limit: the only thing possible where the disk cannot give one. */
  readonly diskBytes: number
  /** Where this machine cannot limit memory, cpu and processes: run without, instead of not at all. */
  readonly mayBeUnlimited?: true
}

export const defaultLimits: Limits = {
  cpus: 1,
  memoryBytes: 512 * 1024 * 1024,
  pidsMax: 512,
  openFilesMax: 4096,
  diskBytes: 10 * 1024 * 1024 * 1024,
}

/** A read-only tree: image layers, the top one first, each a folder with the owners it has inside. */
export interface Image {
  readonly layers: readonly string[]
  /** Host folders that lie below everything at a place of their own, such as the host's `/usr`. */
  readonly grafts?: readonly Graft[]
}

export interface Graft {
  readonly from: string
  readonly to: string
}

export interface Mount {
  readonly from: string
  readonly to: string
  readonly isReadOnly: boolean
}

/** What a sandbox can reach. */
export type Network =
  /** Itself. */
  | { readonly mode: "none" }
  /**
   * Itself and a proxy, on `egressPort`: whoever listens on `proxy.sock` (mode 0666) in this folder of the host (mode 0755). The
   * socket may be replaced while the sandbox runs.
   */
  | { readonly mode: "proxy"; readonly folder: string }
  /** Everything public, with an address of its own that is translated to the host's; not the host, other sandboxes or private networks. */
  | { readonly mode: "bridge" }
  /** Whatever the host reaches, and the host itself. */
  | { readonly mode: "host" }

/** Where programs in a sandbox with the network `proxy` find it, on 127.0.0.1 and ::1. */
export const egressPort = 3128

export interface SandboxSpec {
  /** Chosen by the caller, who writes it down first: whatever happens then can be found again. */
  readonly id: SandboxId
  readonly image: Image
  /** Begins with what that snapshot holds, on the image it was taken of. The snapshot is not needed any more once it is created. */
  readonly from?: SnapshotId
  readonly profile: Profile
  readonly limits: Limits
  readonly hostname: string
  readonly network: Network
  readonly isRootReadOnly: boolean
  readonly mounts: readonly Mount[]
  readonly dns: readonly string[]
}

interface Range {
  readonly min: number
  readonly max: number
}

const ranges: Readonly<Record<Exclude<keyof Limits, "mayBeUnlimited">, Range>> = {
  cpus: { min: 0.01, max: 1024 },
  memoryBytes: { min: 8 * 1024 * 1024, max: 2 ** 46 },
  pidsMax: { min: 8, max: 1_000_000 },
  openFilesMax: { min: 64, max: 1_048_576 },
  diskBytes: { min: 0, max: 2 ** 50 },
}

/** Refuses limits that mean nothing, by name. */
export function checkLimits(limits: Limits): void {
  for (const [name, range] of Object.entries(ranges)) {
    const value = limits[name as keyof typeof ranges]
    const isWhole = name === "cpus" || Number.isInteger(value)
    if (!(isWhole && value >= range.min && value <= range.max)) {
      throw new Fault("invalid", `the limit ${name} is ${value}; it must be from ${range.min} to ${range.max}`)
    }
  }
}

const hostnamePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function checkSpec(spec: SandboxSpec): void {
  checkLimits(spec.limits)
  if (!hostnamePattern.test(spec.hostname)) throw new Fault("invalid", `"${spec.hostname}" is not a host name`)
  if (spec.image.layers.length === 0) throw new Fault("invalid", "an image needs at least one layer")
  const paths = [
    ...spec.image.layers,
    ...(spec.image.grafts ?? []).flatMap((graft) => [graft.from, graft.to]),
    ...spec.mounts.flatMap((mount) => [mount.from, mount.to]),
    ...(spec.network.mode === "proxy" ? [spec.network.folder] : []),
  ]
  for (const path of paths) checkPath(path)
  for (const address of spec.dns) {
    if (!/^[0-9a-f.:]{2,45}$/i.test(address))
      throw new Fault("invalid", `"${address}" is not an address of a DNS server`)
  }
}

/** Absolute, and the same read left to right as resolved: no `..`, no doubled slash, nothing a mount option could misread. */
function checkPath(path: string): void {
  const isPlain = path.startsWith("/") && !/[\0\n\\,:"]/.test(path)
  const isResolved =
    path === "/" ||
    path
      .slice(1)
      .split("/")
      .every((part) => part !== "" && part !== "." && part !== "..")
  if (!isPlain || !isResolved) throw new Fault("invalid", `"${path}" is not a plain absolute path`)
}
