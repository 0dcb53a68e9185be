/** A known defect of a runtime, and why it does not reach what Warren makes. */
export interface Advisory {
  readonly id: string
  readonly program: string
  /** The first version with it; the first of all when absent. */
  readonly since?: string
  /** The first version without it. Absent: none was known when this was written. */
  readonly fixedIn?: string
  readonly avoided: string
}

const advisories: readonly Advisory[] = [
  {
    id: "CVE-2024-21626",
    program: "runc",
    fixedIn: "1.1.12",
    avoided: "no descriptor is passed on, and paths are resolved first",
  },
  {
    id: "CVE-2025-31133",
    program: "runc",
    fixedIn: "1.2.8",
    avoided: "no volume is shared by two starts; root is nobody outside",
  },
  { id: "CVE-2025-52565", program: "runc", fixedIn: "1.2.8", avoided: "no terminal is made by the runtime" },
  {
    id: "CVE-2025-52881",
    program: "runc",
    fixedIn: "1.2.8",
    avoided: "no volume is shared by two starts; root is nobody outside",
  },
  { id: "crun #1845", program: "crun", fixedIn: "1.24", avoided: "it is given three pipes, never /dev/null" },
  {
    id: "CVE-2026-30892",
    program: "crun",
    since: "1.19",
    fixedIn: "1.27",
    avoided: "users are given as numbers, by --process",
  },
  { id: "CVE-2026-47766", program: "crun", avoided: "/dev is always a mount of its own" },
  { id: "CVE-2026-88264, -88265", program: "crun", avoided: "/dev is always a mount of its own" },
]

/** Those that this version has. */
export function advisoriesOf(program: string, version: string): readonly Advisory[] {
  return advisories.filter((one) => {
    const isYounger = one.since !== undefined && isBefore(version, one.since)
    return one.program === program && !isYounger && (!one.fixedIn || isBefore(version, one.fixedIn))
  })
}

function isBefore(version: string, other: string): boolean {
  const [mine, theirs] = [version, other].map((text) => text.split(".").map(Number))
  for (let at = 0; at < Math.max(mine?.length ?? 0, theirs?.length ?? 0); at++) {
    const difference = (mine?.[at] ?? 0) - (theirs?.[at] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
