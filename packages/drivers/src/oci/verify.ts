import type { Posture } from "../posture.ts"
import type { SandboxSpec } from "../sandbox-spec.ts"
import { rangeSize } from "./id-ranges.ts"

export interface Expected {
  readonly spec: SandboxSpec
  readonly idBase: number
  /** The first host gid, where it is another number. */
  readonly gidBase?: number
  /** The last part of the path of its cgroups. */
  readonly cgroupName: string
  /** The capabilities init may have at most, as a bit mask. */
  readonly capabilitiesMax: bigint
  /** Whether there are groups to limit it; where not, it was asked to run without. */
  readonly isLimited?: boolean
  /** Files of `/proc` that must be covered. */
  readonly maskedPaths: readonly string[]
}

const pageBytes = 4096
const namespaces = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]

/** What was asked for and is not in force, each in one sentence. Nothing in it: the sandbox is what it claims to be. */
export function shortfalls(posture: Posture, expected: Expected): string[] {
  const { spec, idBase } = expected
  const found: string[] = []
  const must = (holds: boolean, otherwise: string): void => {
    if (!holds) found.push(otherwise)
  }
  must(posture.seccompMode === 2, "no system call filter is loaded")
  must(posture.noNewPrivileges, "no-new-privs is off")
  for (const [set, most] of [
    ["permitted", expected.capabilitiesMax],
    ["effective", expected.capabilitiesMax],
    ["bounding", expected.capabilitiesMax],
    ["inheritable", 0n],
    ["ambient", 0n],
  ] as const) {
    const digits = posture.capabilities[set]
    const extra = BigInt(`0x${digits || "0"}`) & ~most
    must(digits !== "", `the ${set} capabilities cannot be read`)
    must(extra === 0n, `the ${set} capabilities are wider than asked for (${extra.toString(16)})`)
  }
  for (const [kind, map, base] of [
    ["uid", posture.uidMap, idBase],
    ["gid", posture.gidMap, expected.gidBase ?? idBase],
  ] as const) {
    const [range] = map
    const isOurs = map.length === 1 && range?.inside === 0 && range.outside === base && range.count === rangeSize
    must(isOurs, `the ${kind} map is not the one asked for`)
  }
  for (const name of namespaces) {
    if (name === "net" && spec.network.mode === "host") continue
    must(posture.namespaces[name]?.isOwn === true, `the ${name} namespace is the host's`)
  }
  const { mode } = posture.network ?? {}
  must(mode === spec.network.mode, `the network is "${mode}" instead of "${spec.network.mode}"`)
  if (expected.isLimited !== false) found.push(...limitShortfalls(posture, expected))
  found.push(...mountShortfalls(posture, spec))
  const mountPoints = new Set(posture.mounts.map(({ at }) => at))
  for (const path of expected.maskedPaths) must(mountPoints.has(path), `${path} is not covered`)
  return found
}

function limitShortfalls(posture: Posture, { spec, cgroupName }: Expected): string[] {
  const found: string[] = []
  const must = (holds: boolean, otherwise: string): void => {
    if (!holds) found.push(otherwise)
  }
  for (const controller of ["memory", "pids", "cpu"]) {
    const path = Object.entries(posture.cgroups).find(([names]) => names.split(",").includes(controller))?.[1]
    const isIn = (path ?? posture.cgroups[""] ?? "").endsWith(`/${cgroupName}`)
    must(isIn, `it is not in its ${controller} group`)
  }
  must(Math.abs(posture.limits.cpus - spec.limits.cpus) < 0.02, "the cpu limit is not in force")
  must(Math.abs(posture.limits.memoryBytes - spec.limits.memoryBytes) < pageBytes, "the memory limit is not in force")
  must(posture.limits.pidsMax === spec.limits.pidsMax, "the pids limit is not in force")
  return found
}

/** Mount points that must be there, with the options they must have. */
const mountRules: readonly { readonly at: string; readonly options: readonly string[] }[] = [
  { at: "/proc", options: ["nosuid", "nodev", "noexec"] },
  { at: "/dev", options: ["nosuid"] },
  { at: "/tmp", options: ["nosuid", "nodev"] },
  { at: "/proc/sys", options: ["ro"] },
]

function mountShortfalls(posture: Posture, spec: SandboxSpec): string[] {
  const rules = [...mountRules, ...(spec.isRootReadOnly ? [{ at: "/", options: ["ro"] }] : [])]
  return rules.flatMap(({ at, options }) => {
    const mount = posture.mounts.findLast((candidate) => candidate.at === at)
    if (!mount) return [`${at} is not a mount of its own`]
    const has = new Set(mount.options.split(","))
    return options.filter((option) => !has.has(option)).map((option) => `${at} is mounted without ${option}`)
  })
}
