import { readFileSync, readlinkSync } from "node:fs"
import type { Cgroup } from "../oci/cgroup/cgroup.ts"
import type { Posture } from "../posture.ts"

const namespaces = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
const unlimited = Number.POSITIVE_INFINITY

/** Reads back, from the kernel, what holds for the process `pid`. */
export function measure(pid: number, cgroup: Cgroup | undefined, degraded: readonly string[]): Posture {
  const status = new Map(
    read(pid, "status")
      .split("\n")
      .map((line) => line.split(":\t", 2) as [string, string]),
  )
  const field = (name: string): string => status.get(name)?.trim() ?? ""
  const only = (name: string) => {
    const [id = 0] = field(name).split("\t").map(Number)
    return [{ inside: id, outside: id, count: 1 }]
  }
  return {
    measuredAt: new Date().toISOString(),
    seccompMode: Number(field("Seccomp")),
    noNewPrivileges: field("NoNewPrivs") === "1",
    capabilities: {
      inheritable: field("CapInh"),
      permitted: field("CapPrm"),
      effective: field("CapEff"),
      bounding: field("CapBnd"),
      ambient: field("CapAmb"),
    },
    // The one id it has: without a user namespace it is the same on both sides.
    uidMap: only("Uid"),
    gidMap: only("Gid"),
    namespaces: Object.fromEntries(namespaces.map((name) => [name, namespaceOf(pid, name)])),
    cgroups: cgroupsOf(read(pid, "cgroup")),
    limits: cgroup?.limits() ?? { cpus: unlimited, memoryBytes: unlimited, pidsMax: processesMax(read(pid, "limits")) },
    mounts: [],
    degraded,
  }
}

function read(pid: number, file: string): string {
  return readFileSync(`/proc/${pid}/${file}`, "utf8")
}

function namespaceOf(pid: number, name: string): { id: string; isOwn: boolean } {
  const ours = readlinkSync(`/proc/self/ns/${name}`)
  try {
    const id = readlinkSync(`/proc/${pid}/ns/${name}`)
    return { id, isOwn: id !== ours }
  } catch {
    // init does not let itself be looked at by its own uid. Nothing ever gave it a namespace of its own.
    return { id: ours, isOwn: false }
  }
}

function cgroupsOf(text: string): Record<string, string> {
  const lines = text.trim().split("\n")
  return Object.fromEntries(lines.map((line) => line.split(":", 3).slice(1) as [string, string]))
}

function processesMax(limits: string): number {
  const [, soft = ""] = /^Max processes\s+(\S+)/m.exec(limits) ?? []
  return soft === "unlimited" ? unlimited : Number(soft)
}
