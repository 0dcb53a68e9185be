import { Fault } from "@warren/base/fault.ts"
import { egressAt, etcAt, homeAt, initAt, sudoAt, type Place } from "./places.ts"
import { checkPath, type SandboxInput } from "./sandbox-input.ts"

/** What the launcher binds into the root before the runtime starts. */
export interface Bind {
  readonly from: string
  readonly to: string
  readonly readOnly: boolean
  /** Owners appear inside as they are on disk. */
  readonly idmap: boolean
}

export interface BindInput {
  readonly profile: SandboxInput["profile"]
  readonly isRootReadOnly: boolean
  /** The program init, on the host. */
  readonly init: string
  /** Where the files of `etcFiles` were written, on the host. */
  readonly etcFolder: string
  /** The folder with the egress proxy's socket, on the host. */
  readonly egressFolder?: string | undefined
  /** What the person asked for: the workspace and the like. */
  readonly asked: readonly { readonly from: string; readonly to: string; readonly readOnly: boolean }[]
}

/**
 * Every bind of a sandbox. Refused are targets that would hide or be hidden by something of ours, and one asked-for target
 * inside another: then what is seen would depend on the order. The launcher follows no link to a target.
 */
export function bindsOf(input: BindInput): readonly Bind[] {
  const ours: readonly Bind[] = [
    { from: input.init, to: initAt, readOnly: true, idmap: true },
    ...(input.profile === "dev" ? [{ from: input.init, to: sudoAt, readOnly: true, idmap: true }] : []),
    ...Object.entries(etcAt).map(([name, to]) => ({
      from: `${input.etcFolder}/${name}`,
      to,
      readOnly: true,
      idmap: true,
    })),
    // Nobody's owners matter there, and it may lie on a file system that cannot map them.
    ...(input.egressFolder === undefined
      ? []
      : [{ from: input.egressFolder, to: egressAt, readOnly: true, idmap: false }]),
  ]
  const asked = input.asked.map(({ from, to, readOnly }) => ({ from, to, readOnly, idmap: true }))
  const taken = [...ours.map(({ to }) => to), ...reserved, ...(input.isRootReadOnly ? [homeAt] : [])]
  for (const { from, to } of [...ours, ...asked]) {
    checkPath(from)
    checkPath(to)
  }
  for (const { to } of asked) {
    const other = taken.find((place) => isWithin(place, to) || isWithin(to, place))
    if (other !== undefined) throw new Fault("invalid", `nothing can be mounted at ${to}: it collides with ${other}`)
    taken.push(to)
  }
  return [...ours, ...asked]
}

/** Mounted by the runtime over whatever the launcher put there, or ours. */
const reserved: readonly Place[] = ["/proc", "/dev", "/sys", "/tmp", "/run/warren"]

function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`)
}
