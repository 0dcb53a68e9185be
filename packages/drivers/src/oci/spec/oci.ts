import type { OciSeccomp } from "../seccomp/oci-seccomp.ts"

/** The part of OCI's config.json (runtime-spec 1.0.2) that we use. What is not here cannot be asked for. */
export interface OciConfig {
  readonly ociVersion: "1.0.2"
  readonly root: { readonly path: string; readonly readonly: boolean }
  readonly hostname: string
  readonly process: OciProcess
  readonly mounts: readonly OciMount[]
  readonly linux: OciLinux
  readonly annotations: Readonly<Record<string, string>>
}

export interface OciProcess {
  readonly terminal: false
  readonly user: { readonly uid: number; readonly gid: number; readonly umask: number }
  readonly args: readonly string[]
  readonly env: readonly []
  readonly cwd: "/"
  readonly capabilities: Readonly<Record<CapabilitySet, readonly string[]>>
  readonly noNewPrivileges: true
  readonly rlimits: readonly OciRlimit[]
  readonly oomScoreAdj: number
}

type CapabilitySet = "bounding" | "effective" | "permitted" | "inheritable" | "ambient"

export interface OciRlimit {
  readonly type: `RLIMIT_${string}`
  readonly soft: number
  readonly hard: number
}

export interface OciMount {
  readonly destination: string
  readonly type: "proc" | "tmpfs" | "devpts"
  readonly source: string
  readonly options: readonly string[]
}

export interface OciLinux {
  readonly namespaces: readonly { readonly type: string }[]
  readonly rootfsPropagation: "private"
  readonly maskedPaths: readonly string[]
  readonly readonlyPaths: readonly string[]
  readonly seccomp?: OciSeccomp
}
