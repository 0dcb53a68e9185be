import { errnos, field, Program, verdict, type Place } from "./bpf.ts"
import {
  seccompPolicy,
  type CheckedCall,
  type Condition,
  type Errno,
  type Policy,
  type SeccompProfile,
} from "./policy.ts"
import { archs, type Arch, type ArchFacts } from "./syscalls.ts"

/** What is decided about one number, before its arguments are looked at. */
export type Decision = "allow" | Errno | CheckedCall

interface Range {
  readonly from: number
  readonly decision: Decision
}

/** The filter of a profile as the kernel takes it: struct sock_filter[]. Pure; the same bytes every time. */
export function compileSeccomp(profile: SeccompProfile, arch: Arch): Buffer {
  return compilePolicy(seccompPolicy(profile), archs[arch])
}

/**
 * Native calls are found by binary search over ranges of numbers with one decision. Arguments are loaded only after that:
 * the kernel (5.11 and later) then sees that an allowed number does not depend on them and stops running the filter for it.
 *
 * Calls through another entry (i386's int 0x80, x32, 32-bit ARM) all answer ENOSYS: 32-bit programs are not supported.
 */
export function compilePolicy(policy: Policy, arch: ArchFacts): Buffer {
  const program = new Program()
  const ranges = rangesOf(policy, arch)
  let start = tree(program, ranges)
  if (arch.foreignFrom !== undefined) start = program.ifAtLeast(arch.foreignFrom, missing(program), start)
  start = program.load(field.number, start)
  start = program.ifEqual(arch.audit, start, missing(program))
  program.load(field.arch, start)
  return program.toBytes()
}

/** Decisions by number: a call that this architecture does not have is left out of the table. */
export function decisionsOf(policy: Policy, arch: ArchFacts): ReadonlyMap<number, Decision> {
  const named: (readonly [string, Decision])[] = [
    ...policy.allowed.map((name) => [name, "allow"] as const),
    ...policy.refused.map((name) => [name, "EPERM"] as const),
    ...policy.checked.map((call) => [call.name, call] as const),
  ]
  return new Map(
    named.flatMap(([name, decision]) => {
      const number = arch.numbers.get(name)
      return number === undefined ? [] : [[number, decision] as const]
    }),
  )
}

function rangesOf(policy: Policy, arch: ArchFacts): readonly Range[] {
  const decisions = decisionsOf(policy, arch)
  const last = Math.max(...decisions.keys(), -1)
  const ranges: Range[] = []
  for (let number = 0; number <= last + 1; number++) {
    const decision = decisions.get(number) ?? "ENOSYS"
    if (ranges.at(-1)?.decision !== decision) ranges.push({ from: number, decision })
  }
  return ranges
}

function tree(program: Program, ranges: readonly Range[]): Place {
  const [only] = ranges
  if (only !== undefined && ranges.length === 1) return leaf(program, only.decision)
  const middle = Math.ceil(ranges.length / 2)
  const above = tree(program, ranges.slice(middle))
  const below = tree(program, ranges.slice(0, middle))
  return program.ifAtLeast(ranges[middle]?.from ?? 0, above, below)
}

function leaf(program: Program, decision: Decision): Place {
  if (decision === "allow") return program.answer(verdict.allow)
  if (typeof decision === "string") return program.answer(verdict.errno(errnos[decision]))
  return check(program, decision)
}

function check(program: Program, call: CheckedCall): Place {
  return call.anyOf.reduceRight<Place>(
    (otherwise, conditions) =>
      conditions.reduceRight(
        (met, condition) => test(program, condition, met, otherwise),
        program.answer(verdict.allow),
      ),
    program.answer(verdict.errno(errnos[call.otherwise])),
  )
}

function test(program: Program, condition: Condition, met: Place, unmet: Place): Place {
  const [listed, unlisted] = condition.isNot === true ? [unmet, met] : [met, unmet]
  const compare = condition.values.reduceRight((next, value) => program.ifEqual(value, listed, next), unlisted)
  const masked = condition.mask === 0xffff_ffff ? compare : program.and(condition.mask, compare)
  return program.load(field.argLow(condition.arg), masked)
}

function missing(program: Program): Place {
  return program.answer(verdict.errno(errnos.ENOSYS))
}
