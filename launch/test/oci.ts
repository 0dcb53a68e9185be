/** The config.json that works for crun inside our user namespace. See ../README.md. */

export const capabilities = [
  "CAP_SETUID",
  "CAP_SETGID",
  "CAP_KILL",
  "CAP_SETPCAP",
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_SETFCAP",
  "CAP_SYS_CHROOT",
  "CAP_NET_BIND_SERVICE",
]

type Instruction = readonly [op: number, yes: number, no: number, value: number]

function program(code: readonly Instruction[]): string {
  const bytes = Buffer.alloc(code.length * 8)
  for (const [index, [op, yes, no, value]] of code.entries()) {
    bytes.writeUInt16LE(op, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes.toString("base64")
}

const refuse: Instruction = [0x06, 0, 0, 0x00050001]
const allow: Instruction = [0x06, 0, 0, 0x7fff0000]

/** A filter that refuses one system call with EPERM and allows the rest. */
export function denyOne(number: number): string {
  return program([[0x20, 0, 0, 0], [0x15, 0, 1, number], refuse, allow])
}

/** Subvolumes and snapshots have limits of their own: whoever can make them has no limit (README.md). */
export function denySubvolumes(): string {
  const commands = [0x50009401, 0x5000940e, 0x50009417, 0x50009418]
  return program([
    [0x20, 0, 0, 0],
    [0x15, 0, commands.length + 1, process.arch === "arm64" ? 29 : 16],
    [0x20, 0, 0, 24],
    ...commands.map((command, index): Instruction => [0x15, commands.length - index, 0, command]),
    allow,
    refuse,
  ])
}

export interface ConfigOptions {
  readonly args?: readonly string[]
  readonly readOnly?: boolean
  readonly rootPath?: string
  readonly mounts?: readonly object[]
  readonly seccomp?: string
}

export function config(options: ConfigOptions = {}): object {
  const tmpfs = (destination: string, ...more: string[]): object => ({
    destination,
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "nodev", ...more],
  })
  return {
    ociVersion: "1.0.2",
    root: { path: options.rootPath ?? "/run/root", readonly: options.readOnly ?? false },
    hostname: "warren",
    process: {
      terminal: false,
      user: { uid: 65533, gid: 65533 },
      args: options.args ?? ["/run/warren/init", "--fd", "3", "--profile", "dev", "--user", "1000:1000"],
      env: [],
      cwd: "/",
      capabilities: {
        bounding: capabilities,
        effective: capabilities,
        permitted: capabilities,
        inheritable: capabilities,
        ambient: capabilities,
      },
      noNewPrivileges: true,
      rlimits: [
        { type: "RLIMIT_CORE", hard: 0, soft: 0 },
        { type: "RLIMIT_NOFILE", hard: 16384, soft: 1024 },
        { type: "RLIMIT_MEMLOCK", hard: 65536, soft: 65536 },
      ],
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "nodev", "noexec"] },
      {
        destination: "/dev",
        type: "tmpfs",
        source: "tmpfs",
        options: ["nosuid", "noexec", "mode=755", "size=64k", "nr_inodes=256"],
      },
      {
        destination: "/dev/pts",
        type: "devpts",
        source: "devpts",
        options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", "max=64"],
      },
      tmpfs("/dev/shm", "noexec", "mode=1777", "size=64m", "nr_inodes=4096"),
      tmpfs("/tmp", "mode=1777", "size=64m", "nr_inodes=16384"),
      ...(options.mounts ?? []),
    ],
    linux: {
      namespaces: [
        { type: "pid" },
        { type: "ipc" },
        { type: "uts" },
        { type: "mount" },
        { type: "network" },
        { type: "cgroup" },
      ],
      maskedPaths: [
        "/proc/acpi",
        "/proc/asound",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/config.gz",
        "/proc/kallsyms",
        "/proc/kmsg",
        "/proc/pagetypeinfo",
        "/proc/slabinfo",
        "/proc/modules",
        "/proc/interrupts",
      ],
      readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    },
    annotations: { "run.oci.seccomp_bpf_data": options.seccomp ?? denyOne(250) },
  }
}
