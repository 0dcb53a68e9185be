import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { messageOf } from "@warren/base/fault.ts"
import type { Probe } from "../driver.ts"

/** Scoped signals and abstract sockets: without them a sandbox could signal every process of its uid. */
const landlockAbiMin = 6
const run = promisify(execFile)

/** What the `process` driver needs of a machine, in the order it bites. */
export async function probes(confine: string, noCgroups: string | undefined): Promise<Probe[]> {
  return [await landlockProbe(confine), seccompProbe(), userProbe(), cgroupProbe(noCgroups)]
}

async function landlockProbe(confine: string): Promise<Probe> {
  try {
    const abi = Number((await run(confine, ["--abi"])).stdout)
    const isMet = abi >= landlockAbiMin
    const detail = abi > 0 ? `ABI ${abi}` : "not enabled"
    const fix = "boot Linux 6.12 or later with lsm=landlock,… on the kernel's command line"
    return { name: "landlock", isMet, detail, ...(isMet ? {} : { fix }) }
  } catch (failure) {
    return { name: "landlock", isMet: false, detail: messageOf(failure), fix: "npm run build" }
  }
}

function seccompProbe(): Probe {
  const isMet = existsSync("/proc/sys/kernel/seccomp/actions_avail")
  return { name: "seccomp", isMet, detail: isMet ? "filters available" : "this kernel has none" }
}

function userProbe(): Probe {
  const isRoot = process.getuid?.() === 0
  const detail = isRoot ? "every sandbox gets a uid of its own" : "sandboxes share this user's uid"
  return { name: "user", isMet: true, detail }
}

function cgroupProbe(noCgroups: string | undefined): Probe {
  const isMet = noCgroups === undefined
  return {
    name: "cgroups",
    isMet,
    detail: noCgroups ?? "writable",
    ...(isMet ? {} : { fix: "run as root, or have a cgroup delegated to this user" }),
  }
}
