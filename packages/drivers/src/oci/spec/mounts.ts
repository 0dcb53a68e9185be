import type { OciMount } from "./oci.ts"
import { homeAt, type Place } from "./places.ts"
import type { SandboxInput } from "./sandbox-input.ts"

/**
 * What the runtime mounts, in this order. Folders and files of the host are not here: the launcher binds them before, by
 * descriptors that cannot be led astray by a link in the image. A /dev of our own comes first of all that is below /dev: an image
 * whose /dev is a link would otherwise have nodes made in a folder of the host (CVE-2026-47766). There is no /sys, no
 * /sys/fs/cgroup and no mqueue: programs do without, and what is not mounted cannot leak.
 */
export function mountsOf({ limits, isRootReadOnly, user }: SandboxInput): readonly OciMount[] {
  return [
    { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "nodev", "noexec"] },
    tmpfs("/dev", ["noexec", "mode=755", "size=64k", "nr_inodes=256"], []),
    {
      destination: "/dev/pts",
      type: "devpts",
      source: "devpts",
      // Terminals are counted for the whole machine: without `max` one sandbox can take them all.
      options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", "max=64"],
    },
    tmpfs("/dev/shm", ["noexec", "mode=1777", ...sized(limits.shmBytes, 16_384)]),
    tmpfs("/tmp", ["mode=1777", ...sized(limits.tmpBytes, 4096)]),
    ...(isRootReadOnly
      ? [tmpfs(homeAt, ["mode=700", `uid=${user.uid}`, `gid=${user.gid}`, ...sized(limits.tmpBytes, 4096)])]
      : []),
  ]
}

function tmpfs(destination: Place, options: readonly string[], base: readonly string[] = ["nodev"]): OciMount {
  return { destination, type: "tmpfs", source: "tmpfs", options: ["nosuid", ...base, ...options] }
}

/** Inodes are memory, too, and not counted in `size`. */
function sized(bytes: number, bytesPerInode: number): readonly string[] {
  return [`size=${bytes}`, `nr_inodes=${Math.max(64, Math.floor(bytes / bytesPerInode))}`]
}
