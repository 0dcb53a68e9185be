import { expect, test } from "vitest"
import { advisoriesOf } from "./advisories.ts"
import { hardeningSysctls, readHardening, type HardeningFacts } from "./hardening-facts.ts"
import { hardeningProbes } from "./hardening-probes.ts"

const hard: HardeningFacts = {
  isRoot: true,
  sysctls: {
    ...Object.fromEntries(hardeningSysctls.map((name) => [name, "2"])),
    "kernel/core_pattern": "core",
    "fs/suid_dumpable": "0",
  },
  modules: ["lockdown", "capability", "apparmor"],
  procOptions: "rw,nosuid,hidepid=invisible",
  weaknesses: { meltdown: "Not affected", spectre_v2: "Mitigation: Retpolines" },
  hasSiblings: false,
  hasSwap: false,
  mergesPages: false,
  runtimes: { crun: undefined, runc: "1.4.0" },
}
const lacking = (facts: HardeningFacts): string[] =>
  hardeningProbes(facts)
    .filter(({ isMet }) => !isMet)
    .map(({ name }) => name)

test("a machine that does all of it lacks nothing", () => {
  expect(lacking(hard)).toEqual([])
})

test.each<[string, Partial<HardeningFacts>]>([
  ["tracing of processes", { sysctls: { ...hard.sysctls, "kernel/yama/ptrace_scope": undefined } }],
  ["links in shared folders", { sysctls: { ...hard.sysctls, "fs/protected_symlinks": "0" } }],
  ["core dumps", { sysctls: { ...hard.sysctls, "fs/suid_dumpable": "2" } }],
  ["a security module that confines", { modules: ["lockdown", "landlock"] }],
  ["others' processes are hidden", { procOptions: "rw,nosuid" }],
  ["weaknesses of the processor", { weaknesses: { mds: "Vulnerable: Clear CPU buffers attempted, no microcode" } }],
  ["weaknesses of the processor", { weaknesses: {} }],
  ["threads that share a core", { hasSiblings: true }],
  ["swap", { hasSwap: true }],
  ["merging of equal pages", { mergesPages: true }],
  ["runc without known defects", { runtimes: { runc: "1.1.5" } }],
])("what is missing is said, with what to do and what it costs: %s", (name, change) => {
  const facts = { ...hard, ...change }
  expect(lacking(facts)).toEqual([name])
  const found = hardeningProbes(facts).find(({ isMet }) => !isMet)
  expect(found).toMatchObject({ fix: expect.stringMatching(/\w/), without: expect.stringMatching(/\w/) })
})

test("versions are compared as numbers", () => {
  expect(advisoriesOf("runc", "1.1.5").map(({ id }) => id)).toContain("CVE-2024-21626")
  expect(advisoriesOf("runc", "1.10.0")).toEqual([])
  expect(advisoriesOf("crun", "1.8.1").length).toBeGreaterThan(advisoriesOf("crun", "1.28").length)
})

test("this very machine can be looked at", () => {
  const probes = hardeningProbes(readHardening())
  expect(probes.length).toBeGreaterThan(15)
  for (const { detail } of probes) expect(detail).not.toBe("")
})
