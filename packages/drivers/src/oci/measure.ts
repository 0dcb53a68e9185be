import { readFileSync, readlinkSync } from "node:fs"
import type { IdRange, Posture } from "../posture.ts"
import type { Cgroup } from "./cgroup/cgroup.ts"

const namespaces = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]

/** Ours, which do not change. */
const hostNamespaces = Object.fromEntries(namespaces.map((name) => [name, readlinkSync(`/proc/self/ns/${name}`)]))

/** Reads back, from the kernel, what holds for the process `pid`. */
export function measure(pid: number, cgroup: Cgroup, degraded: readonly string[]): Posture {
  const proc = (file: string): string => readFileSync(`/proc/${pid}/${file}`, "utf8")
  const status = new Map(
    proc("status")
      .split("\n")
      .map((line) => line.split(":\t", 2) as [string, string]),
  )
  const set = (name: string): string => status.get(name)?.trim() ?? ""
  return {
    measuredAt: new Date().toISOString(),
    seccompMode: Number(set("Seccomp")),
    noNewPrivileges: set("NoNewPrivs") === "1",
    capabilities: {
      inheritable: set("CapInh"),
      permitted: set("CapPrm"),
      effective: set("CapEff"),
      bounding: set("CapBnd"),
      ambient: set("CapAmb"),
    },
    uidMap: idMap(proc("uid_map")),
    gidMap: idMap(proc("gid_map")),
    namespaces: Object.fromEntries(namespaces.map((name) => [name, namespaceOf(pid, name)])),
    cgroups: Object.fromEntries(cgroupsOf(proc("cgroup"))),
    limits: cgroup.limits(),
    mounts: mountsOf(proc("mountinfo")),
    degraded,
  }
}

function namespaceOf(pid: number, name: string): { id: string; isOwn: boolean } {
  const id = readlinkSync(`/proc/${pid}/ns/${name}`)
  return { id, isOwn: id !== hostNamespaces[name] }
}

function idMap(text: string): IdRange[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [inside = 0, outside = 0, count = 0] = line.trim().split(/\s+/).map(Number)
      return { inside, outside, count }
    })
}

function cgroupsOf(text: string): [string, string][] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [, controllers = "", path = ""] = line.split(":", 3)
      return [controllers, path]
    })
}

function mountsOf(text: string): { at: string; type: string; options: string }[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [left = "", right = ""] = line.split(" - ")
      const fields = left.split(" ")
      return { at: fields[4] ?? "", options: fields[5] ?? "", type: right.split(" ")[0] ?? "" }
    })
}
