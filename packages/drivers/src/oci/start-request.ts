import { join } from "node:path"
import type { Mount, SandboxSpec } from "../sandbox-spec.ts"
import type { StartRequest } from "./launcher.ts"
import type { Runtime } from "./runtime.ts"
import { bindsOf } from "./spec/binds.ts"
import { ociConfig } from "./spec/config.ts"
import type { Places } from "./store.ts"
import type { UserLimits } from "./user-limits.ts"

interface StartParts {
  readonly spec: SandboxSpec
  readonly places: Places
  readonly map: StartRequest["map"]
  readonly cgroups: readonly string[]
  readonly runtime: Runtime
  /** init, on the host. */
  readonly init: string
  readonly libraries: string | undefined
  /** Whether owners are mapped as files are mounted. */
  readonly idmap: boolean
  readonly userLimits: UserLimits
  readonly timeoutMs: number
}

interface Layer {
  readonly to: string
  readonly upper: string
  readonly work: string
}

/** Where a sandbox's writable layers are: the root's first, then one for each graft. */
export function layers(spec: SandboxSpec, { data }: Places): readonly [Layer, ...Layer[]] {
  const layer = (to: string, name: string): Layer => ({ to, upper: join(data, name), work: join(data, `${name}-work`) })
  return [layer("/", "root"), ...(spec.image.grafts ?? []).map(({ to }, index) => layer(to, `graft-${index}`))]
}

/** Somewhere to work is always writable, whatever else is not. */
export function needsWorkspace(spec: SandboxSpec): boolean {
  return spec.isRootReadOnly && !spec.mounts.some(({ to }) => to === workspaceAt)
}

const workspaceAt = "/workspace"

function mounts(spec: SandboxSpec, { workspace }: Places): readonly Mount[] {
  if (!needsWorkspace(spec)) return spec.mounts
  return [...spec.mounts, { from: workspace, to: workspaceAt, isReadOnly: false }]
}

/** Everything the launcher must know to start one sandbox. */
export function startRequest(parts: StartParts): StartRequest {
  const { spec, places, runtime, libraries } = parts
  const [root, ...grafted] = layers(spec, places)
  return {
    lowers: spec.image.layers,
    upper: root.upper,
    work: root.work,
    overlays: grafted.map((layer, index) => ({
      ...layer,
      lowers: (spec.image.grafts ?? []).slice(index, index + 1).map(({ from }) => from),
      readOnly: spec.isRootReadOnly,
    })),
    binds: bindsOf({
      profile: spec.profile,
      isRootReadOnly: spec.isRootReadOnly,
      init: parts.init,
      etcFolder: places.etc,
      egressFolder: spec.network.mode === "proxy" ? spec.network.folder : undefined,
      asked: mounts(spec, places).map(({ from, to, isReadOnly }) => ({ from, to, readOnly: isReadOnly })),
    }).map((bind) => ({ ...bind, idmap: bind.idmap && parts.idmap })),
    map: parts.map,
    cgroups: parts.cgroups,
    socket: places.socket,
    config: JSON.stringify(ociConfig(spec, runtime.name)),
    runtime: [runtime.program, ...runtimeArguments(runtime.name, spec.id)],
    ...(libraries === undefined ? {} : { libraries }),
    userLimits: { ...parts.userLimits },
    idmap: parts.idmap,
    timeoutMs: parts.timeoutMs,
  }
}

/**
 * The launcher's private `/run` holds the bundle, the runtime's state and the pid file. All of it is inside the user namespace
 * and the cgroups already, so each runtime is told to leave both alone.
 */
function runtimeArguments(name: Runtime["name"], id: string): string[] {
  const detached = ["run", "--detach"]
  const bundle = ["--bundle", "/run", "--pid-file", "/run/pid", id]
  const keyring = "--no-new-keyring"
  const argv: Readonly<Record<Runtime["name"], string[]>> = {
    crun: ["--root", "/run/state", "--cgroup-manager=disabled", ...detached, keyring, "--preserve-fds=1", ...bundle],
    runc: ["--root", "/run/state", "--rootless=true", ...detached, keyring, "--preserve-fds=1", ...bundle],
  }
  return argv[name]
}
