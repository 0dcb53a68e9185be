/** What was measured about a sandbox's isolation, from outside, after it started. */
export interface Posture {
  readonly measuredAt: string
  /** 0 none, 1 strict, 2 filter. */
  readonly seccompMode: number
  readonly noNewPrivileges: boolean
  /** The five sets of init, as the kernel writes them: 16 hex digits. */
  readonly capabilities: Readonly<Record<CapabilitySet, string>>
  readonly uidMap: readonly IdRange[]
  readonly gidMap: readonly IdRange[]
  /** Namespace ids of the sandbox, and whether each differs from the host's. */
  readonly namespaces: Readonly<Record<string, { readonly id: string; readonly isOwn: boolean }>>
  readonly cgroups: Readonly<Record<string, string>>
  readonly limits: { readonly memoryBytes: number; readonly cpus: number; readonly pidsMax: number }
  readonly mounts: readonly { readonly at: string; readonly type: string; readonly options: string }[]
  /** Absent where the driver's sandboxes have no network to speak of. */
  readonly network?: NetworkPosture
  /** What was asked for and is weaker than it could be, in plain words. Never hidden. */
  readonly degraded: readonly string[]
}

export interface NetworkPosture {
  /** As found, not as asked for. */
  readonly mode: "none" | "proxy" | "bridge" | "host"
  /** Devices that have routes; with `host` they are the host's. */
  readonly routes: readonly string[]
}

export type CapabilitySet = "inheritable" | "permitted" | "effective" | "bounding" | "ambient"

export interface IdRange {
  readonly inside: number
  readonly outside: number
  readonly count: number
}
