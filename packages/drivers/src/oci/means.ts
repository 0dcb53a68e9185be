import { Fault } from "@warren/base/fault.ts"
import type { Abilities } from "../driver.ts"
import type { SandboxSpec } from "../sandbox-spec.ts"
import type { Cgroups } from "./cgroup/cgroup.ts"
import { isOnDisk } from "./disk.ts"
import type { Owners } from "./owners.ts"
import type { Volume } from "./volume.ts"

/** What this machine, and our rights on it, let us enforce. */
export interface Means {
  readonly cgroups: Cgroups
  readonly volume: Volume
  readonly owners: Owners
}

export function abilitiesOf({ cgroups, volume, owners }: Means): Abilities {
  const { missing } = cgroups
  const { unlimited } = volume
  return {
    pause: missing === undefined,
    rootInside: true,
    snapshot: true,
    diskLimit: unlimited === undefined,
    reasons: {
      ...(unlimited === undefined ? {} : { diskLimit: unlimited }),
      ...(volume.copies === undefined ? {} : { snapshotCost: costOf(volume.copies, missing) }),
      ...(volume.notes.length === 0 ? {} : { volume: volume.notes.join("; ") }),
      ...(missing === undefined ? {} : { limits: missing, pause: missing }),
      ...(owners.isMapped ? {} : { mounts: "without root a folder of the host can only be mounted read-only" }),
    },
  }
}

/** Nobody may write to what is being copied. */
function costOf(copies: string, missing: string | undefined): string {
  return missing === undefined ? `${copies}; the sandbox is paused meanwhile` : `${copies}; the sandbox must be stopped`
}

/** Says no, and what would help, to what could only be had in name. */
export function refuseWhatCannotBe(spec: SandboxSpec, { cgroups, volume, owners }: Means): void {
  if (spec.network.mode === "bridge" && !owners.isMapped) {
    throw new Fault("unsupported", "without root a sandbox cannot have an address of its own", {
      hint: 'ask for the network "proxy", or run as root',
    })
  }
  if (cgroups.missing !== undefined && !spec.limits.mayBeUnlimited) {
    throw new Fault("unsupported", `memory, cpu and processes cannot be limited: ${cgroups.missing}`, {
      hint: "have a cgroup delegated to this user (npm run doctor says how), or ask for limits.mayBeUnlimited",
    })
  }
  if (spec.limits.diskBytes > 0 && volume.unlimited !== undefined) {
    throw new Fault("unsupported", `the disk cannot be limited: ${volume.unlimited}`, {
      hint: "npm run doctor says what is missing; or ask for diskBytes 0",
    })
  }
  const writable = owners.isMapped
    ? undefined
    : spec.mounts.find(({ isReadOnly, from }) => !isReadOnly && !isOnDisk(volume, from))
  if (writable) {
    throw new Fault("unsupported", `without root ${writable.from} can only be mounted read-only`, {
      hint: "its files belong to somebody who does not exist inside: copy them in and out, or run as root",
    })
  }
}

/** What cannot be had here although it would be better, in plain words. */
export function weaknesses({ cgroups, volume, owners }: Means, idBase: number, isMapped: boolean): string[] {
  const found: [isSo: boolean, words: string][] = [
    [cgroups.missing !== undefined, `nothing limits its memory, cpu and processes: ${cgroups.missing}`],
    [volume.unlimited !== undefined, `nothing limits what it writes to the disk: ${volume.unlimited}`],
    [owners.ranges.isShared(idBase), "its ids on this machine are also those of other sandboxes of the same user"],
    [!isMapped, "files of the image look as if they were nobody's, and cannot be changed inside"],
  ]
  return found.filter(([isSo]) => isSo).map(([, words]) => words)
}
