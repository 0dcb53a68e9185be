import type { SandboxInput, SandboxLimits } from "./sandbox-input.ts"

const mebibyte = 2 ** 20

export function someInput(over: Partial<SandboxInput> = {}, limits: Partial<SandboxLimits> = {}): SandboxInput {
  return {
    rootPath: "/run/root",
    hostname: "sandbox-1",
    profile: "dev",
    isRootReadOnly: false,
    limits: {
      memoryBytes: 512 * mebibyte,
      pidsMax: 256,
      openFilesMax: 4096,
      tmpBytes: 64 * mebibyte,
      shmBytes: 32 * mebibyte,
      ...limits,
    },
    user: { uid: 1000, gid: 1000 },
    workspace: "/workspace",
    network: "own",
    forwards: [],
    seccomp: "compiled",
    arch: "x86_64",
    machine: { memoryBytes: 8192 * mebibyte, openFilesMax: 16_384, processesMax: 30_000, oomScoreAdj: 0 },
    ...over,
  }
}
