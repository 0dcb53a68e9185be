import type { OciConfig } from "@warren/drivers/oci/spec/oci.ts"
import { ociConfig } from "@warren/drivers/oci/spec/config.ts"
import type { SandboxSpec } from "@warren/drivers/sandbox-spec.ts"
import type { Bind } from "@warren/drivers/oci/spec/binds.ts"
import { kindOf } from "./steps.ts"

/** What the sandboxes of baselines are made from: a spec of the driver's and the binds that go with it. */
export interface Stock {
  readonly spec: SandboxSpec
  readonly binds: readonly Bind[]
}

/** As the driver's, with the table of system calls instead of the compiled filter. */
export function plainConfig({ spec }: Stock): OciConfig {
  return ociConfig(spec, "runc")
}

/** The driver's config.json as a plain crun takes it: user namespace, limits and filter are its own work. */
export function crunConfig(stock: Stock, cgroupsPath: string, args: readonly string[]): object {
  const config = plainConfig(stock)
  const { cpus, memoryBytes, pidsMax } = stock.spec.limits
  const ids = [{ containerID: 0, hostID: 0x7000_0000, size: 65_536 }]
  return {
    ...config,
    root: { path: "root", readonly: false },
    process: { ...config.process, args },
    mounts: [
      ...config.mounts,
      ...stock.binds.map(({ from, to }) => ({
        destination: to,
        type: "bind",
        source: from,
        options: ["bind", "ro", "nosuid", "nodev"],
      })),
    ],
    linux: {
      ...config.linux,
      namespaces: [...config.linux.namespaces, { type: "user" }],
      uidMappings: ids,
      gidMappings: ids,
      cgroupsPath,
      resources: {
        devices: [{ allow: false, access: "rwm" }],
        memory: { limit: memoryBytes, swap: memoryBytes },
        pids: { limit: pidsMax },
        cpu: { quota: cpus * 100_000, period: 100_000 },
      },
    },
  }
}

/** One of many, each in a bundle of its own: the root is where the layers are. */
export function crowdConfig(stock: Stock, cgroupsPath: string, args: readonly string[]): object {
  return { ...crunConfig(stock, cgroupsPath, args), root: { path: "/mnt/bundle/root", readonly: false } }
}

/** Says on fd 10 which process it made, and is that process itself: nothing waits beside it. */
export function bwrapIdleArguments(stock: Stock, args: readonly string[]): readonly string[] {
  return [...bwrapArguments(stock).slice(0, -1), "--as-pid-1", "--info-fd", "10", ...args]
}

/** The same root, mounts, masks and namespaces for bwrap. It maps one id only, and its /dev is its own. */
export function bwrapArguments(stock: Stock): readonly string[] {
  const { linux, hostname } = plainConfig(stock)
  const masks = linux.maskedPaths.flatMap((path) => {
    const kind = kindOf(path)
    if (kind === "folder") return ["--tmpfs", path, "--remount-ro", path]
    return kind ? ["--ro-bind", "/dev/null", path] : []
  })
  const fixed = linux.readonlyPaths.filter((path) => kindOf(path) && !linux.maskedPaths.includes(path))
  return [
    "/usr/bin/bwrap",
    ...["user", "pid", "net", "ipc", "uts", "cgroup"].map((name) => `--unshare-${name}`),
    ...["--uid", "65533", "--gid", "65533", "--hostname", hostname, "--cap-drop", "ALL", "--clearenv"],
    ...["--bind", "/mnt/bundle/root", "/"],
    ...stock.binds.flatMap(({ from, to }) => ["--ro-bind", from, to]),
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/tmp"],
    ...masks,
    ...fixed.flatMap((path) => ["--ro-bind", path, path]),
    ...["--seccomp", "9", "--chdir", "/", "/usr/bin/true"],
  ]
}
