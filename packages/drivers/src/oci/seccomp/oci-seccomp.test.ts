import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { verdict } from "./bpf.ts"
import { compileSeccomp } from "./compile.ts"
import { ociSeccomp, seccompAnnotation } from "./oci-seccomp.ts"
import { seccompPolicy } from "./policy.ts"
import { archs } from "./syscalls.ts"
import { judge } from "./testing/judge.ts"

describe("the annotation for crun", () => {
  it("is the compiled filter", () => {
    const [[key, data] = []] = Object.entries(seccompAnnotation("dev", "x86_64"))
    expect(key).toBe("run.oci.seccomp_bpf_data")
    expect(Buffer.from(data ?? "", "base64")).toEqual(compileSeccomp("dev", "x86_64"))
  })
})

describe("linux.seccomp", () => {
  const policy = seccompPolicy("strict")
  const rules = ociSeccomp("strict", "x86_64").syscalls

  it("has one condition per argument in a rule: runc reads two as alternatives", () => {
    for (const { args = [] } of rules) expect(new Set(args.map(({ index }) => index)).size).toBe(args.length)
  })

  it("allows exactly what the filter allows", () => {
    const near = policy.checked.flatMap((call) => call.anyOf.flat().flatMap(({ values }) => values))
    const value = fc.tuple(fc.constantFrom(...near), fc.integer({ min: 0, max: 40 }))
    const arg = value.map(([base, bit]) => BigInt.asUintN(64, BigInt(base) ^ (bit > 36 ? 0n : 1n << BigInt(bit))))
    const names = policy.checked.map(({ name }) => name)
    const args = fc.array(arg, { minLength: 6, maxLength: 6 })
    const property = fc.property(fc.constantFrom(...names), args, (name, values) => {
      const call = { arch: archs.x86_64.audit, number: archs.x86_64.numbers.get(name) ?? -1, args: values }
      const isAllowed = rules.some(
        (rule) =>
          rule.action === "SCMP_ACT_ALLOW" &&
          rule.names.includes(name) &&
          (rule.args ?? []).every(
            ({ index, value: mask, valueTwo }) => ((values[index] ?? 0n) & BigInt(mask)) === BigInt(valueTwo),
          ),
      )
      expect(isAllowed).toBe(judge(policy, archs.x86_64, call) === verdict.allow)
    })
    fc.assert(property, { numRuns: 5000 })
  })

  it("names no call that the architecture lacks", () => {
    for (const rule of ociSeccomp("dev", "aarch64").syscalls) {
      for (const name of rule.names) expect(archs.aarch64.numbers.has(name), name).toBe(true)
    }
  })
})
