import { Fault } from "@warren/base/fault.ts"
import type { SeccompProfile } from "../seccomp/policy.ts"
import type { Arch } from "../seccomp/syscalls.ts"
import type { Machine } from "./machine.ts"

/** What a config.json is made from. No command, no environment, no secret: those go to init over its socket. */
export interface SandboxInput {
  /** Where the launcher mounts the root, as the runtime sees it. */
  readonly rootPath: string
  readonly hostname: string
  readonly profile: SeccompProfile
  readonly isRootReadOnly: boolean
  readonly limits: SandboxLimits
  /** The user that commands run as. */
  readonly user: { readonly uid: number; readonly gid: number }
  /** The folder commands start in; absent: init's own choice. */
  readonly workspace?: string
  /** `own`: a network namespace, with nothing but loopback in it. */
  readonly network: "own" | "host"
  /** Ports of loopback that init passes on: `port:/path/of/a/socket`. */
  readonly forwards: readonly string[]
  /** `compiled`: as an annotation, which only crun reads. `table`: for runtimes that compile it themselves. */
  readonly seccomp: "compiled" | "table"
  readonly arch: Arch
  readonly machine: Machine
}

export interface SandboxLimits {
  readonly memoryBytes: number
  readonly pidsMax: number
  readonly openFilesMax: number
  readonly tmpBytes: number
  readonly shmBytes: number
}

/** The ids of a sandbox's map, inside. */
const idMax = 65_535

/** tmpfs for a sandbox of this size, half of what may be had: there is room for a home when the root is read-only. */
export function tmpfsFor(memoryBytes: number): { readonly tmpBytes: number; readonly shmBytes: number } {
  return { tmpBytes: pages(memoryBytes / 8), shmBytes: pages(memoryBytes / 8) }
}

export function checkInput(input: SandboxInput): void {
  checkLimits(input)
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(input.hostname)) {
    throw new Fault("invalid", `"${input.hostname}" is not a host name`)
  }
  for (const id of [input.user.uid, input.user.gid]) {
    if (!isWhole(id, 1, idMax - 3)) throw new Fault("invalid", `commands cannot run as ${id}`)
  }
  checkPath(input.rootPath)
  if (input.workspace !== undefined) checkPath(input.workspace)
}

/** Absolute, and the same read left to right as resolved. */
export function checkPath(path: string): void {
  const isResolved = /^(?:\/[^/]+)+$/.test(path) && !path.split("/").some((part) => part === "." || part === "..")
  // Nothing that a mount option or a line of mountinfo could misread.
  // oxlint-disable-next-line no-control-regex
  const isPlain = !/[\0-\x1f\\,:"]/.test(path) && Buffer.byteLength(path) <= 4095
  if (!isResolved || !isPlain) throw new Fault("invalid", `${JSON.stringify(path)} is not a plain absolute path`)
}

function checkLimits({ limits, machine, isRootReadOnly }: SandboxInput): void {
  const bounds: Readonly<Record<keyof SandboxLimits, readonly [min: number, max: number]>> = {
    memoryBytes: [8 * 1024 * 1024, machine.memoryBytes],
    pidsMax: [8, 1_000_000],
    openFilesMax: [64, machine.openFilesMax],
    tmpBytes: [4096, machine.memoryBytes],
    shmBytes: [4096, machine.memoryBytes],
  }
  for (const name of Object.keys(bounds) as (keyof SandboxLimits)[]) {
    const [min, max] = bounds[name]
    if (!isWhole(limits[name], min, max)) {
      throw new Fault("invalid", `the limit ${name} is ${limits[name]}; on this machine it is from ${min} to ${max}`)
    }
  }
  // What is written to a tmpfs is memory: above the limit the kernel would end init instead of saying "no space".
  const tmpfsBytes = limits.tmpBytes * (isRootReadOnly ? 2 : 1) + limits.shmBytes
  if (tmpfsBytes > limits.memoryBytes / 2) {
    throw new Fault("invalid", `the in-memory file systems (${tmpfsBytes} bytes) exceed half of the memory limit`)
  }
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= min && value <= max
}

function pages(bytes: number): number {
  return Math.max(1, Math.floor(bytes / 4096)) * 4096
}
