import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"

/** What this machine does by itself to keep its users and programs apart, beyond what sandboxes need. */
export interface HardeningFacts {
  readonly isRoot: boolean
  /** By its name below `/proc/sys`; absent where this kernel has no such switch. */
  readonly sysctls: Readonly<Record<string, string | undefined>>
  /** The security modules the kernel runs; absent where it does not say. */
  readonly modules: readonly string[] | undefined
  /** How `/proc` is mounted. */
  readonly procOptions: string
  /** The processor's known weaknesses, in the kernel's words. */
  readonly weaknesses: Readonly<Record<string, string>>
  readonly hasSiblings: boolean
  readonly hasSwap: boolean
  readonly mergesPages: boolean
  readonly runtimes: Readonly<Record<string, string | undefined>>
}

export const hardeningSysctls = [
  ...["kernel/yama/ptrace_scope", "kernel/unprivileged_bpf_disabled", "kernel/kptr_restrict", "kernel/dmesg_restrict"],
  ...["kernel/perf_event_paranoid", "kernel/io_uring_disabled", "kernel/kexec_load_disabled", "kernel/core_pattern"],
  ...["fs/protected_symlinks", "fs/protected_hardlinks", "fs/protected_fifos", "fs/protected_regular"],
  ...["fs/suid_dumpable", "dev/tty/legacy_tiocsti", "vm/unprivileged_userfaultfd"],
] as const
const weaknessFolder = "/sys/devices/system/cpu/vulnerabilities"
const askMs = 5_000

export function readHardening(): HardeningFacts {
  const sysctls = hardeningSysctls.map((name) => [name, read(`/proc/sys/${name}`)] as const)
  const weaknesses = namesIn(weaknessFolder).map((name) => [name, read(`${weaknessFolder}/${name}`) ?? ""] as const)
  return {
    isRoot: process.getuid?.() === 0,
    sysctls: Object.fromEntries(sysctls),
    modules: read("/sys/kernel/security/lsm")?.split(","),
    procOptions: /^\S+ \/proc proc (\S+)/m.exec(read("/proc/mounts") ?? "")?.[1] ?? "",
    weaknesses: Object.fromEntries(weaknesses),
    hasSiblings: read("/sys/devices/system/cpu/smt/active") === "1",
    hasSwap: (read("/proc/swaps") ?? "").split("\n").length > 1,
    mergesPages: read("/sys/kernel/mm/ksm/run") === "1",
    runtimes: { crun: versionOf("crun"), runc: versionOf("runc") },
  }
}

function versionOf(program: string): string | undefined {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: askMs })
  return /version (\d+(?:\.\d+)*)/.exec(stdout ?? "")?.[1]
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return undefined
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted()
  } catch {
    return []
  }
}
