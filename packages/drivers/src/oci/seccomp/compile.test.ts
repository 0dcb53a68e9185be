import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { errnos, verdict } from "./bpf.ts"
import { compilePolicy, compileSeccomp } from "./compile.ts"
import { absent, seccompPolicy, type CheckedCall, type Policy } from "./policy.ts"
import { archs, type Arch, type ArchFacts } from "./syscalls.ts"
import { argumentCases } from "./testing/argument-cases.ts"
import { runFilter } from "./testing/bpf-machine.ts"
import { judge } from "./testing/judge.ts"

const profiles = ["strict", "dev"] as const
const archNames = Object.keys(archs) as Arch[]
const eperm = verdict.errno(errnos.EPERM)
const enosys = verdict.errno(errnos.ENOSYS)
const zeros = [0n, 0n, 0n, 0n, 0n, 0n]

/** What an attacker would try in an argument: values of the table, one bit off, and the same with high bits set. */
function argument(policy: Policy): fc.Arbitrary<bigint> {
  const known = policy.checked.flatMap((call) => call.anyOf.flat().flatMap(({ mask, values }) => [mask, ...values]))
  const near = fc
    .tuple(fc.constantFrom(0, ...known), fc.integer({ min: -1, max: 1 }), fc.nat(63))
    .map(([value, off, bit]) => BigInt.asUintN(64, BigInt(value) + BigInt(off)) ^ (bit < 40 ? 0n : 1n << BigInt(bit)))
  return fc.oneof(near, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }))
}

describe.each(profiles.flatMap((profile) => archNames.map((arch) => ({ profile, arch }))))(
  "$profile on $arch",
  (row) => {
    const policy = seccompPolicy(row.profile)
    const facts = archs[row.arch]
    const filter = compileSeccomp(row.profile, row.arch)

    it("answers every number as the table says", () => {
      for (let number = -1; number < 1024; number++) {
        const call = { arch: facts.audit, number: number >>> 0, args: zeros }
        expect(runFilter(filter, call), `number ${number}`).toBe(judge(policy, facts, call))
      }
    })

    it("answers checked calls as the table says, whatever the arguments", () => {
      const args = fc.array(argument(policy), { minLength: 6, maxLength: 6 })
      const names = policy.checked.map((call) => call.name).filter((name) => facts.numbers.has(name))
      const property = fc.property(fc.constantFrom(...names), args, (name, values) => {
        const call = { arch: facts.audit, number: facts.numbers.get(name) ?? -1, args: values }
        expect(runFilter(filter, call)).toBe(judge(policy, facts, call))
      })
      fc.assert(property, { numRuns: 5000 })
    })

    it("has nothing behind the other entries", () => {
      const foreign = [0x4000_0003, 0x4000_0028, 0xc000_003e, 0xc000_00b7, 0].filter((arch) => arch !== facts.audit)
      for (const arch of foreign) {
        for (let number = 0; number < 600; number++)
          expect(runFilter(filter, { arch, number, args: zeros })).toBe(enosys)
      }
      for (let number = 0; number < 600; number++) {
        expect(runFilter(filter, { arch: facts.audit, number: number + 0x4000_0000, args: zeros })).toBe(enosys)
      }
    })

    it.each(argumentCases)("%s: %s", (_, name, args, errno) => {
      const number = facts.numbers.get(name) ?? -1
      const call = { arch: facts.audit, number, args: args.map((arg) => BigInt(arg)) }
      expect(runFilter(filter, call)).toBe(
        errno === errnos.EPERM || errno === errnos.EAFNOSUPPORT ? verdict.errno(errno) : verdict.allow,
      )
    })

    it("stays small, so that a start spends nothing on it", () => expect(filter.length).toBeLessThan(3072))
  },
)

it("reaches every target in programs of any length", () => {
  const decision = fc.constantFrom("allow", "refuse", "check", "none")
  const property = fc.property(fc.array(decision, { maxLength: 900 }), fc.nat(900), fc.nat(9), (list, number, arg) => {
    const named = list.map((kind, index) => ({ kind, name: `call${index}` }))
    const arch: ArchFacts = { ...archs.x86_64, numbers: new Map(named.map(({ name }, index) => [name, index])) }
    const policy: Policy = {
      allowed: named.filter(({ kind }) => kind === "allow").map(({ name }) => name),
      refused: named.filter(({ kind }) => kind === "refuse").map(({ name }) => name),
      checked: named.filter(({ kind }) => kind === "check").map(({ name }, index) => someCheck(name, index)),
    }
    const call = { arch: arch.audit, number, args: [BigInt(arg), ...zeros.slice(1)] }
    expect(runFilter(compilePolicy(policy, arch), call)).toBe(judge(policy, arch, call))
  })
  fc.assert(property, { numRuns: 300 })
})

function someCheck(name: string, seed: number): CheckedCall {
  const isNot = seed % 2 === 0 ? ({ isNot: true } as const) : {}
  return { name, anyOf: [[{ arg: 0, mask: 0xf, values: [seed % 10], ...isNot }]], otherwise: "EPERM" }
}

describe("the table", () => {
  const known = new Set(archNames.flatMap((arch) => [...archs[arch].numbers.keys()]))

  it.each(profiles)("decides every known call exactly once (%s)", (profile) => {
    const { allowed, refused, checked } = seccompPolicy(profile)
    const decided = [...allowed, ...refused, ...checked.map((call) => call.name), ...absent]
    expect(decided.length).toBe(new Set(decided).size)
    expect(new Set(decided)).toEqual(known)
  })

  it("differs between the profiles in chroot only", () => {
    const strict = new Set(seccompPolicy("strict").allowed)
    expect(seccompPolicy("dev").allowed.filter((name) => !strict.has(name))).toEqual(["chroot"])
  })

  it.each([
    ["mount", eperm],
    ["umount2", eperm],
    ["pivot_root", eperm],
    ["chroot", eperm],
    ["move_mount", eperm],
    ["fsopen", eperm],
    ["open_tree", eperm],
    ["mount_setattr", eperm],
    ["unshare", eperm],
    ["setns", eperm],
    ["bpf", eperm],
    ["perf_event_open", eperm],
    ["userfaultfd", eperm],
    ["keyctl", eperm],
    ["add_key", eperm],
    ["request_key", eperm],
    ["open_by_handle_at", eperm],
    ["name_to_handle_at", eperm],
    ["kcmp", eperm],
    ["pidfd_getfd", eperm],
    ["process_vm_writev", eperm],
    ["process_vm_readv", enosys],
    ["fanotify_init", eperm],
    ["quotactl", eperm],
    ["syslog", eperm],
    ["vhangup", eperm],
    ["clock_adjtime", eperm],
    ["adjtimex", eperm],
    ["settimeofday", eperm],
    ["init_module", eperm],
    ["finit_module", eperm],
    ["kexec_load", eperm],
    ["reboot", eperm],
    ["swapon", eperm],
    ["iopl", eperm],
    ["ioperm", eperm],
    ["clone3", enosys],
    ["io_uring_setup", enosys],
    ["io_uring_enter", enosys],
    ["io_uring_register", enosys],
    ["vmsplice", enosys],
    ["memfd_secret", enosys],
    ["modify_ldt", enosys],
    ["mbind", enosys],
    ["set_mempolicy", enosys],
    ["move_pages", enosys],
    ["io_setup", enosys],
  ])("strict refuses %s", (name, answer) => {
    for (const arch of archNames) {
      const number = archs[arch].numbers.get(name)
      if (number === undefined) continue
      expect(runFilter(compileSeccomp("strict", arch), { arch: archs[arch].audit, number, args: zeros })).toBe(answer)
    }
  })
})
