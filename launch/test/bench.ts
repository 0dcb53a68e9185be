/** Prints how long starting and ending a sandbox takes, four ways in turns. `tsx launch/test/bench.ts [rounds] [ways]` */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { buildLaunch, buildLibraries, compile } from "../build.ts"
import { config } from "./oci.ts"

const here = import.meta.dirname
const rounds = process.argv[2] ?? "60"

const refused = new Set([
  "bpf",
  "userfaultfd",
  "keyctl",
  "add_key",
  "request_key",
  "perf_event_open",
  "fanotify_init",
  "unshare",
  "setns",
  "mount",
  "umount2",
  "pivot_root",
  "chroot",
  "name_to_handle_at",
  "open_by_handle_at",
  "kcmp",
  "process_vm_readv",
  "process_vm_writev",
  "move_pages",
  "mbind",
  "vmsplice",
  "modify_ldt",
  "quotactl",
  "adjtimex",
  "syslog",
  "vhangup",
  "init_module",
  "finit_module",
  "delete_module",
  "kexec_load",
  "kexec_file_load",
  "reboot",
  "swapon",
  "swapoff",
  "io_uring_setup",
  "io_uring_enter",
  "io_uring_register",
  "open_tree",
  "move_mount",
  "fsopen",
  "fsconfig",
  "fsmount",
  "fspick",
  "mount_setattr",
  "acct",
  "nfsservctl",
])
const calls = [
  ...readFileSync("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "utf8").matchAll(/__NR_(\w+) (\d+)/g),
].map(([, name, number]) => ({ name: String(name), number: Number(number) }))
const allowed = calls.filter(({ name }) => !refused.has(name))

/** The same table twice: as OCI JSON, which crun has libseccomp compile at every start, and compiled once by us. */
function ociFilter(): object {
  const names = allowed.map(({ name }) => name).filter((name) => name !== "clone" && name !== "personality")
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    syscalls: [
      { names, action: "SCMP_ACT_ALLOW" },
      {
        names: ["clone"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value: 0x7e020000, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
      },
      ...[0, 8, 0x20000, 0x20008, 0xffffffff].map((value) => ({
        names: ["personality"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value, op: "SCMP_CMP_EQ" }],
      })),
    ],
  }
}

function rawFilter(): Buffer {
  const code: [number, number, number, number][] = []
  const push = (op: number, yes: number, no: number, value: number): void => {
    code.push([op, yes, no, value])
  }
  push(0x20, 0, 0, 4) // the architecture
  push(0x15, 1, 0, 0xc000003e)
  push(0x06, 0, 0, 0x00050026)
  push(0x20, 0, 0, 0) // the number
  const numbers = allowed.map(({ number }) => number).sort((a, b) => a - b)
  const ranges: [number, number][] = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last && last[1] + 1 === number) last[1] = number
    else ranges.push([number, number])
  }
  for (const [first, last] of ranges) {
    push(0x35, 0, 2, first) // ≥ first, else the next range
    push(0x25, 1, 0, last) // > last: the next range
    push(0x06, 0, 0, 0x7fff0000)
  }
  push(0x06, 0, 0, 0x00050001)
  const bytes = Buffer.alloc(code.length * 8)
  for (const [index, [op, yes, no, value]] of code.entries()) {
    bytes.writeUInt16LE(op, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes
}

const world = await mkdtemp("/tmp/launch-bench-")
try {
  await chmod(world, 0o755)
  const launch = await buildLaunch(path.join(world, "bin"))
  const bench = await compile([path.join(here, "bench.c")], path.join(world, "bin/bench"))
  await compile([path.join(here, "guest.c")], path.join(world, "init"))
  for (const name of ["etc", "dev", "proc", "tmp", "workspace", "run/warren"])
    await mkdir(path.join(world, "lower", name), { recursive: true })
  await writeFile(path.join(world, "lower/etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")
  await writeFile(path.join(world, "lower/run/warren/init"), "")
  await mkdir(path.join(world, "workspace"))
  await chown(path.join(world, "workspace"), 1000, 1000)
  const filter = rawFilter()
  await writeFile(path.join(world, "seccomp.bpf"), filter)
  const ours = { ...config(), annotations: { "run.oci.seccomp_bpf_data": filter.toString("base64") } }
  await writeFile(path.join(world, "config-ours.txt"), JSON.stringify(JSON.stringify(ours)))
  const plain = config({ rootPath: "@ROOT@" }) as { mounts: object[]; linux: { namespaces: object[] } }
  const ids = [{ containerID: 0, hostID: 3_000_000, size: 65536 }]
  const stock = {
    ...plain,
    annotations: {},
    mounts: [
      ...plain.mounts,
      {
        destination: "/workspace",
        type: "bind",
        source: path.join(world, "workspace"),
        options: ["bind", "nosuid", "nodev"],
      },
      { destination: "/run/warren/init", type: "bind", source: path.join(world, "init"), options: ["bind", "ro"] },
    ],
    linux: {
      ...plain.linux,
      namespaces: [...plain.linux.namespaces, { type: "user" }],
      uidMappings: ids,
      gidMappings: ids,
      cgroupsPath: "@CGROUP@",
      resources: { memory: { limit: 536_870_912 }, pids: { limit: 256 }, cpu: { quota: 100_000, period: 100_000 } },
      seccomp: ociFilter(),
    },
  }
  await writeFile(path.join(world, "config-stock.json"), JSON.stringify(stock))

  const libraries = process.env["NO_STUB"] ? undefined : await buildLibraries(path.join(world, "bin"))
  const output = execFileSync(bench, [rounds, world, launch, ...process.argv.slice(3)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...(libraries ? { LIBRARIES: libraries } : {}) },
  }).toString()
  const samples = new Map<string, [number[], number[], number[]]>()
  for (const line of output.trim().split("\n")) {
    const [way = "", start, end, done] = line.split(" ")
    const of = samples.get(way) ?? [[], [], []]
    of[0].push(Number(start) / 1000)
    of[1].push(Number(end) / 1000)
    of[2].push(Number(done) / 1000)
    samples.set(way, of)
  }
  const middle = (list: number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN
  const show = (n: number): string => n.toFixed(2).padStart(8)
  const base = samples.get("launch")
  process.stdout.write("way      answers p50  min |  started |  end p50   min  | ours/this: answers  end\n")
  for (const [way, [starts, ends, done]] of samples) {
    const ratio = base ? `${show(middle(base[0]) / middle(starts))} ${show(middle(base[1]) / middle(ends))}` : ""
    process.stdout.write(
      `${way.padEnd(8)} ${show(middle(starts))} ${show(Math.min(...starts))} |${show(middle(done))} |${show(middle(ends))} ${show(Math.min(...ends))} | ${ratio}\n`,
    )
  }
} finally {
  await rm(world, { recursive: true, force: true })
}
