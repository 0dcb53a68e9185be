import { existsSync, readFileSync, readlinkSync } from "node:fs"
import type { IdRange, NetworkPosture, Posture } from "../posture.ts"
import type { Cgroup } from "./cgroup/cgroup.ts"
import { egressAt } from "./spec/places.ts"

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
  const mounts = mountsOf(proc("mountinfo"))
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
    mounts,
    network: networkOf(pid, mounts),
    degraded,
  }
}

function namespaceOf(pid: number, name: string): { id: string; isOwn: boolean } {
  const id = readlinkSync(`/proc/${pid}/ns/${name}`)
  return { id, isOwn: id !== hostNamespaces[name] }
}

function networkOf(pid: number, mounts: Posture["mounts"]): NetworkPosture {
  const lines = (file: string): string[] => readFileSync(`/proc/${pid}/net/${file}`, "utf8").trim().split("\n")
  // The device comes first for version 4, below a heading, and last for version 6.
  const devices = [
    ...lines("route")
      .slice(1)
      .map((line) => line.split("\t")[0] ?? ""),
    ...(existsSync(`/proc/${pid}/net/ipv6_route`) ? lines("ipv6_route") : []).map(
      (line) => line.split(" ").at(-1) ?? "",
    ),
  ]
  const routes = [...new Set(devices)].filter((name) => name !== "lo" && name !== "").toSorted()
  if (!namespaceOf(pid, "net").isOwn) return { mode: "host", routes }
  if (routes.length > 0) return { mode: "bridge", routes }
  return { mode: mounts.some(({ at }) => at === egressAt) ? "proxy" : "none", routes }
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
