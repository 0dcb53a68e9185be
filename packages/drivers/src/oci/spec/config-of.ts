import { ociSeccomp, seccompAnnotation } from "../seccomp/oci-seccomp.ts"
import type { OciConfig, OciProcess, OciRlimit } from "./oci.ts"
import { maskedPaths, readonlyPaths } from "./masks.ts"
import { initCapabilities as capabilities } from "./capabilities.ts"
import type { Machine } from "./machine.ts"
import { mountsOf } from "./mounts.ts"
import { initAt } from "./places.ts"
import { checkInput, type SandboxInput, type SandboxLimits } from "./sandbox-input.ts"

/** init's own user: commands cannot signal, trace or look into it. */
const warrenId = 65_533

/**
 * The whole config.json of a sandbox. The runtime runs as root of the sandbox's user namespace, which the launcher made, in
 * cgroups that the launcher joined: so there is no user namespace and there are no resources in here.
 */
export function configOf(input: SandboxInput): OciConfig {
  checkInput(input)
  return {
    ociVersion: "1.0.2",
    root: { path: input.rootPath, readonly: input.isRootReadOnly },
    hostname: input.hostname,
    process: processOf(input),
    mounts: mountsOf(input),
    linux: {
      namespaces: ["pid", ...(input.network === "own" ? ["network"] : []), "ipc", "uts", "mount", "cgroup"].map(
        (type) => ({ type }),
      ),
      rootfsPropagation: "private",
      maskedPaths,
      readonlyPaths,
      ...(input.seccomp === "table" ? { seccomp: ociSeccomp(input.profile, input.arch) } : {}),
    },
    annotations: input.seccomp === "compiled" ? seccompAnnotation(input.profile, input.arch) : {},
  }
}

function processOf({ profile, user, workspace, forwards, limits, machine }: SandboxInput): OciProcess {
  return {
    terminal: false,
    user: { uid: warrenId, gid: warrenId, umask: 0o022 },
    args: [
      initAt,
      ...["--fd", "3"],
      ...["--profile", profile],
      ...["--user", `${user.uid}:${user.gid}`],
      ...(workspace === undefined ? [] : ["--workspace", workspace]),
      ...forwards.flatMap((forward) => ["--forward", forward]),
    ],
    env: [],
    cwd: "/",
    capabilities: {
      bounding: capabilities,
      effective: capabilities,
      permitted: capabilities,
      // A program that is not root keeps capabilities over exec only if they are in these; init empties both at once.
      inheritable: capabilities,
      ambient: capabilities,
    },
    noNewPrivileges: true,
    rlimits: rlimitsOf(limits, machine),
    // The least that a command can give itself: were init above it, many small commands could have the kernel end init, and with
    // it the sandbox. init gives commands 500, so that they go before the runner when the host runs out of memory.
    oomScoreAdj: Math.max(0, machine.oomScoreAdj),
  }
}

/** A resource limit counts those that are being refused, too: with no room for them it would say no before the cgroup, which tells of it. */
const forksUnderWay = 16

function rlimitsOf({ openFilesMax, pidsMax }: SandboxLimits, { processesMax }: Machine): readonly OciRlimit[] {
  const processes = Math.min(pidsMax + forksUnderWay, processesMax)
  return [
    // A core dump would be written by the host's handler, outside.
    { type: "RLIMIT_CORE", soft: 0, hard: 0 },
    // select() of old programs breaks above 1024, so the rest is for those who ask.
    { type: "RLIMIT_NOFILE", soft: Math.min(1024, openFilesMax), hard: openFilesMax },
    // The cgroup counts for the sandbox; this still holds where there is no cgroup.
    { type: "RLIMIT_NPROC", soft: processes, hard: processes },
    { type: "RLIMIT_MEMLOCK", soft: 65_536, hard: 65_536 },
  ]
}
