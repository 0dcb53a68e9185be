import { errnos, verdict } from "../bpf.ts"
import type { Condition, Policy } from "../policy.ts"
import type { ArchFacts } from "../syscalls.ts"
import type { Call } from "./bpf-machine.ts"

/** The table read in the plainest way, as the measure for the compiler. */
export function judge(policy: Policy, arch: ArchFacts, call: Call): number {
  const missing = verdict.errno(errnos.ENOSYS)
  if (call.arch !== arch.audit) return missing
  const name = [...arch.numbers].find(([, number]) => number === call.number)?.[0]
  if (name === undefined) return missing
  if (policy.allowed.includes(name)) return verdict.allow
  if (policy.refused.includes(name)) return verdict.errno(errnos.EPERM)
  const checked = policy.checked.find((candidate) => candidate.name === name)
  if (checked === undefined) return missing
  const isAllowed = checked.anyOf.some((conditions) => conditions.every((condition) => holds(condition, call)))
  return isAllowed ? verdict.allow : verdict.errno(errnos[checked.otherwise])
}

export function holds({ arg, mask, values, isNot }: Condition, call: Call): boolean {
  const low = (call.args[arg] ?? 0n) & 0xffff_ffffn & BigInt(mask)
  return values.some((value) => BigInt(value) === low) !== (isNot === true)
}
