import { existsSync, readFileSync } from "node:fs"
import type { Probe } from "../driver.ts"
import { messageOf } from "@warren/base/fault.ts"
import { cgroupMounts } from "./cgroup/open.ts"
import { findRuntime } from "./runtime.ts"

/** What the `oci` driver needs of a machine, in the order it bites. */
export function probes(): Probe[] {
  return [runtimeProbe(), rootProbe(), namespaceProbe(), cgroupProbe(), seccompProbe(), overlayProbe()]
}

function runtimeProbe(): Probe {
  try {
    return { name: "runtime", isMet: true, detail: findRuntime("crun").program }
  } catch (failure) {
    return { name: "runtime", isMet: false, detail: messageOf(failure), fix: "apt-get install crun" }
  }
}

function rootProbe(): Probe {
  const isMet = process.getuid?.() === 0
  return {
    name: "root",
    isMet,
    detail: isMet ? "running as root" : "running as an ordinary user",
    ...(isMet ? {} : { fix: "sudo npm start" }),
  }
}

function namespaceProbe(): Probe {
  const isMet = existsSync("/proc/self/ns/user")
  return { name: "user namespaces", isMet, detail: isMet ? "available" : "this kernel has none" }
}

function cgroupProbe(): Probe {
  const { v1, v2 } = cgroupMounts(readFileSync("/proc/self/mountinfo", "utf8"))
  const isMet = v1.has("memory") || v2 !== undefined
  const detail = v1.has("memory") ? "version 1" : v2 ? "version 2" : "none mounted"
  return { name: "cgroups", isMet, detail, ...(isMet ? {} : { fix: "mount -t cgroup2 cgroup2 /sys/fs/cgroup" }) }
}

function seccompProbe(): Probe {
  const isMet = existsSync("/proc/sys/kernel/seccomp/actions_avail")
  return { name: "seccomp", isMet, detail: isMet ? "filters available" : "this kernel has none" }
}

function overlayProbe(): Probe {
  const isMet = readFileSync("/proc/filesystems", "utf8").includes("overlay")
  return {
    name: "overlay",
    isMet,
    detail: isMet ? "available" : "not loaded",
    ...(isMet ? {} : { fix: "modprobe overlay" }),
  }
}
