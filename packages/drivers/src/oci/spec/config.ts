import { Fault } from "@warren/base/fault.ts"
import { egressPort, type SandboxSpec } from "../../sandbox-spec.ts"
import { archOf } from "../seccomp/syscalls.ts"
import { configOf } from "./config-of.ts"
import { thisMachine, type Machine } from "./machine.ts"
import type { OciConfig } from "./oci.ts"
import { egressAt } from "./places.ts"
import { tmpfsFor } from "./sandbox-input.ts"

/** Where the launcher mounts the root. */
const rootPath = "/run/root"

/** The config.json of a sandbox on this machine. */
export function ociConfig(spec: SandboxSpec, runtime: string, machine: Machine = here()): OciConfig {
  const arch = archOf(process.arch)
  if (arch === undefined) throw new Fault("unsupported", `there is no system call filter for ${process.arch}`)
  const { memoryBytes, pidsMax, openFilesMax } = spec.limits
  return configOf({
    rootPath,
    hostname: spec.hostname,
    profile: spec.profile,
    isRootReadOnly: spec.isRootReadOnly,
    limits: { memoryBytes, pidsMax, openFilesMax, ...tmpfsFor(memoryBytes) },
    user: { uid: 1000, gid: 1000 },
    workspace: "/workspace",
    network: spec.network.mode === "host" ? "host" : "own",
    forwards: spec.network.mode === "proxy" ? [`${egressPort}:${egressAt}/proxy.sock`] : [],
    seccomp: runtime === "crun" ? "compiled" : "table",
    arch,
    machine,
  })
}

let facts: Machine | undefined

/** Facts about this machine, read once. */
function here(): Machine {
  facts ??= thisMachine()
  return facts
}
