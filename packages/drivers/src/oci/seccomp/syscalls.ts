import { aarch64 } from "./aarch64.ts"
import { x8664 } from "./x86-64.ts"

export type Arch = "x86_64" | "aarch64"

export interface ArchFacts {
  /** AUDIT_ARCH_*: what the kernel puts into seccomp_data.arch for native calls. */
  readonly audit: number
  /** Numbers from here on belong to another way in (x32), not to this table. */
  readonly foreignFrom: number | undefined
  /** The name libseccomp and OCI use. */
  readonly scmp: string
  readonly numbers: ReadonlyMap<string, number>
}

export const archs: Readonly<Record<Arch, ArchFacts>> = {
  x86_64: { audit: 0xc000_003e, foreignFrom: 0x4000_0000, scmp: "SCMP_ARCH_X86_64", numbers: parse(x8664) },
  aarch64: { audit: 0xc000_00b7, foreignFrom: undefined, scmp: "SCMP_ARCH_AARCH64", numbers: parse(aarch64) },
}

/** Node's word for the machine, as ours. */
export function archOf(nodeArch: string): Arch | undefined {
  return nodeArch === "x64" ? "x86_64" : nodeArch === "arm64" ? "aarch64" : undefined
}

function parse(table: string): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>()
  for (const line of table.trim().split("\n")) {
    const [first, ...names] = line.split(" ")
    names.forEach((name, index) => numbers.set(name, Number(first) + index))
  }
  return numbers
}
