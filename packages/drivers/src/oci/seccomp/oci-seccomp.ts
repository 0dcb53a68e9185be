import { errnos } from "./bpf.ts"
import { compileSeccomp } from "./compile.ts"
import { cubesOf, meet, type Cube, type Cubes } from "./cubes.ts"
import { seccompPolicy, type CheckedCall, type SeccompProfile } from "./policy.ts"
import { archs, type Arch } from "./syscalls.ts"

/** crun takes a compiled filter as it is, which saves libseccomp's 20 ms at every start. */
const crunAnnotation = "run.oci.seccomp_bpf_data"

export function seccompAnnotation(profile: SeccompProfile, arch: Arch): Readonly<Record<string, string>> {
  const key = `${profile} ${arch}`
  const text = compiled.get(key) ?? compileSeccomp(profile, arch).toString("base64")
  compiled.set(key, text)
  return { [crunAnnotation]: text }
}

/** The table does not change while we run, and compiling it is a tenth of a millisecond of every start. */
const compiled = new Map<string, string>()

interface OciArg {
  readonly index: number
  /** The mask; OCI's names follow libseccomp's. */
  readonly value: number
  readonly valueTwo: number
  readonly op: "SCMP_CMP_MASKED_EQ"
}

interface OciRule {
  readonly names: readonly string[]
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO"
  readonly errnoRet?: number
  readonly args?: readonly OciArg[]
}

export interface OciSeccomp {
  readonly defaultAction: "SCMP_ACT_ERRNO"
  readonly defaultErrnoRet: number
  readonly architectures: readonly string[]
  readonly syscalls: readonly OciRule[]
}

/**
 * The same table for runtimes that compile it themselves (runc, Kata). Two differences, neither of which allows more:
 * a checked call that fails its check answers ENOSYS, and calls through a 32-bit entry end the thread, because
 * libseccomp would open the whole table to an architecture that is listed.
 */
export function ociSeccomp(profile: SeccompProfile, arch: Arch): OciSeccomp {
  const { allowed, refused, checked } = seccompPolicy(profile)
  const { numbers, scmp } = archs[arch]
  const here = (name: string) => numbers.has(name)
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: errnos.ENOSYS,
    architectures: [scmp],
    syscalls: [
      { names: allowed.filter(here), action: "SCMP_ACT_ALLOW" },
      { names: refused.filter(here), action: "SCMP_ACT_ERRNO", errnoRet: errnos.EPERM },
      ...checked.filter((call) => here(call.name)).flatMap(rulesOf),
    ],
  }
}

function rulesOf(call: CheckedCall): readonly OciRule[] {
  return call.anyOf.flatMap((conditions) =>
    conditions
      .map((condition) => cubesOf(condition).map((cube): Cubes => new Map([[condition.arg, cube]])))
      .reduce<readonly Cubes[]>(meet, [new Map()])
      .map((cubes) => ({ names: [call.name], action: "SCMP_ACT_ALLOW" as const, args: [...cubes].map(argOf) })),
  )
}

function argOf([index, { mask, value }]: readonly [number, Cube]): OciArg {
  return { index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" }
}
