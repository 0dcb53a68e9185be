import type { Probe } from "../driver.ts"
import type { HardeningFacts } from "./hardening-facts.ts"
import { advisoriesOf } from "./advisories.ts"

/**
 * How well this machine keeps its users and programs apart by itself. Sandboxes do not lean on any of it; each is one more thing in
 * the way of somebody who got past one of them.
 */
export function hardeningProbes(facts: HardeningFacts): Probe[] {
  return [
    ...switches.map((one) => switched(one, facts)),
    modules(facts),
    processes(facts),
    cores(facts),
    ...[weaknesses(facts), siblings(facts), swap(facts), pages(facts)],
    ...Object.entries(facts.runtimes).flatMap(([name, version]) => runtime(name, version)),
  ]
}

interface Switch {
  readonly name: string
  readonly sysctl: string
  /** From here on it is good. */
  readonly least: number
  readonly without: string
  /** A kernel that has no such switch: is that good? */
  readonly isFineWithout?: boolean
}

const switches: readonly Switch[] = [
  {
    ...{ name: "tracing of processes", sysctl: "kernel/yama/ptrace_scope", least: 1 },
    without: "a user's programs may read the memory of that user's other programs",
  },
  {
    ...{ name: "bpf of ordinary users", sysctl: "kernel/unprivileged_bpf_disabled", least: 1 },
    without: "an ordinary account may load programs into the kernel",
    isFineWithout: true,
  },
  {
    ...{ name: "io_uring", sysctl: "kernel/io_uring_disabled", least: 1 },
    without: "accounts outside of sandboxes reach it; inside it is refused all the same",
  },
  {
    ...{ name: "kernel addresses", sysctl: "kernel/kptr_restrict", least: 1 },
    without: "addresses of the kernel can be read, which attacks on it begin with",
  },
  {
    ...{ name: "kernel messages", sysctl: "kernel/dmesg_restrict", least: 1 },
    without: "ordinary accounts read what the kernel logs",
  },
  {
    ...{ name: "performance counters", sysctl: "kernel/perf_event_paranoid", least: 2 },
    without: "ordinary accounts measure the kernel and others' programs",
    isFineWithout: true,
  },
  {
    ...{ name: "another kernel", sysctl: "kernel/kexec_load_disabled", least: 1 },
    without: "whoever becomes root can start another kernel",
    isFineWithout: true,
  },
  {
    ...{ name: "links in shared folders", sysctl: "fs/protected_symlinks", least: 1 },
    without: "in /tmp one account can lead another's programs astray",
  },
  {
    ...{ name: "hard links", sysctl: "fs/protected_hardlinks", least: 1 },
    without: "an account can keep files of others under names of its own",
  },
  {
    ...{ name: "pipes in shared folders", sysctl: "fs/protected_fifos", least: 1 },
    without: "in /tmp a pipe of one account can catch what another writes",
  },
  {
    ...{ name: "files in shared folders", sysctl: "fs/protected_regular", least: 1 },
    without: "in /tmp a file of one account can catch what another writes",
  },
]

function switched({ name, sysctl, least, without, isFineWithout = false }: Switch, { sysctls }: HardeningFacts): Probe {
  const value = sysctls[sysctl]
  const dotted = sysctl.replaceAll("/", ".")
  if (value === undefined) {
    const fix = "nothing here: this kernel was built without it"
    return wish(name, isFineWithout, `this kernel has no ${dotted}`, { fix, without })
  }
  const fix = `echo '${dotted} = ${least}' | sudo tee -a /etc/sysctl.d/60-warren.conf && sudo sysctl --system`
  return wish(name, Number(value) >= least, `${dotted} is ${value}`, { fix, without })
}

function modules({ modules: all }: HardeningFacts): Probe {
  const confining = (all ?? []).filter((one) => ["apparmor", "selinux", "smack", "tomoyo"].includes(one))
  const detail = all === undefined ? "the kernel does not say which it runs" : all.join(", ")
  return wish("a security module that confines", confining.length > 0, detail, {
    fix: "boot with apparmor=1 security=apparmor, and install apparmor",
    without: "what gets out of a sandbox is held by its account alone",
  })
}

function processes({ procOptions }: HardeningFacts): Probe {
  const isHidden = /hidepid=(?:[12]|invisible|noaccess|ptraceable)/.test(procOptions)
  return wish("others' processes are hidden", isHidden, `/proc is mounted ${procOptions}`, {
    fix: "sudo mount -o remount,hidepid=invisible /proc (and in /etc/fstab)",
    without: "accounts read each other's command lines, also of programs in sandboxes; no secret of Warren's is on one",
  })
}

function cores({ sysctls }: HardeningFacts): Probe {
  const pattern = sysctls["kernel/core_pattern"] ?? ""
  const isSafe = (sysctls["fs/suid_dumpable"] ?? "0") === "0"
  return wish("core dumps", isSafe, `${pattern || "none"}, fs.suid_dumpable is ${sysctls["fs/suid_dumpable"] ?? "0"}`, {
    fix: "sudo sysctl -w fs.suid_dumpable=0",
    without: "a program that changed its account may leave its memory in a file",
  })
}

function weaknesses({ weaknesses: all }: HardeningFacts): Probe {
  const open = Object.entries(all).filter(([, said]) => said.startsWith("Vulnerable"))
  const names = open.map(([name]) => name).join(", ")
  const known = Object.keys(all).length
  const detail =
    known === 0 ? "the kernel does not say" : open.length === 0 ? `${known} known, none open` : `open: ${names}`
  return wish("weaknesses of the processor", known > 0 && open.length === 0, detail, {
    fix: "update the kernel and the processor's microcode, and boot without mitigations=off",
    without: "programs may read memory of others by measuring time; only a machine of its own helps for certain",
  })
}

function siblings({ hasSiblings }: HardeningFacts): Probe {
  return wish("threads that share a core", !hasSiblings, hasSiblings ? "on" : "off", {
    fix: "boot with nosmt, where users do not trust each other",
    without: "two sandboxes on one core can measure each other",
  })
}

function swap({ hasSwap }: HardeningFacts): Probe {
  return wish("swap", !hasSwap, hasSwap ? "on" : "off", {
    fix: "sudo swapoff -a, or swap to an encrypted device",
    without: "what was only in memory may be on the disk, and stay there",
  })
}

function pages({ mergesPages }: HardeningFacts): Probe {
  return wish("merging of equal pages", !mergesPages, mergesPages ? "on" : "off", {
    fix: "echo 2 | sudo tee /sys/kernel/mm/ksm/run",
    without: "a sandbox can find out whether another has the same page",
  })
}

function runtime(name: string, version: string | undefined): Probe[] {
  if (version === undefined) return []
  const known = advisoriesOf(name, version)
  const words = known.map(({ id, avoided }) => `${id} (${avoided})`).join("; ")
  const detail = known.length === 0 ? `${version}: nothing known` : `${version}: ${words}`
  return [
    wish(`${name} without known defects`, known.length === 0, detail, {
      fix: `install a newer ${name}; Warren takes the first one in PATH`,
      without: "Warren relies on how it calls it, as said for each",
    }),
  ]
}

function wish(name: string, isMet: boolean, detail: string, lack: { fix: string; without: string }): Probe {
  return { name, isMet, detail, ...(isMet ? {} : lack) }
}
