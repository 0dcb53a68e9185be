import { execFileSync } from "node:child_process"
import { chmodSync, readFileSync } from "node:fs"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { delegateGroups, makePerson, processesOf, testAs, type Person } from "./testing/person.ts"

const isRoot = process.getuid?.() === 0
const timeout = 240_000
const slots = 65_536
const conformance = "driver.live.test.ts"
const ownCases = "ordinary-user.live.test.ts"
/** What is not about rights that only root has, nor about code that is the same for everybody. */
const attacks = ["checklist", "abuse", "posture", "bad-input", "crash", "fork-crash"].map(
  (name) => `${name}.live.test.ts`,
)
const attackNames = [
  "the checklist",
  "abuse of (?:processes (?:buries|ends what ignores)|memory (?:ends a|says)|what is counted for the whole machine gives|the kernel|output holds back)",
  "posture refuses a sandbox without (?!the range of owners)",
  "bad input in a spec (?:a layer|no layer|an id)",
  "a crash (?:of init|that left)",
  ".*leaves nothing half-made",
]

/** The same suites, by somebody without any right on this machine. */
describe.skipIf(!isRoot)("as an ordinary user", () => {
  let person: Person

  beforeAll(async () => {
    person = await makePerson(16 * slots)
  })
  afterAll(() => person[Symbol.asyncDispose]())

  /** What was granted in /etc/subuid, and the person's own. */
  function ids(): { first: number; count: number }[] {
    const lines = readFileSync("/etc/subuid", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
    const granted = lines.filter(([name]) => name === person.name)
    return [
      { first: person.uid, count: 1 },
      ...granted.map(([, first, count]) => ({ first: Number(first), count: Number(count) })),
    ]
  }

  it("conforms, with limits where groups were delegated", { timeout }, async () => {
    using groups = delegateGroups(person)
    const report = await testAs(person, [conformance, ownCases], { WARREN_TEST_CGROUP_PARENT: groups.parent })
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(60)
    expect(report.skipped.filter((name) => !isForOthers(name))).toEqual([])
    expect(processesOf(ids())).toEqual([])
  })

  it("conforms without limits where none were, if that is asked for", { timeout }, async () => {
    const report = await testAs(person, [conformance, ownCases])
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(60)
    const reported = report.skipped.filter((name) => !isForOthers(name))
    expect(
      reported.every((name) => /too much memory|paused/.test(name)),
      reported.join("; "),
    ).toBe(true)
    expect(processesOf(ids())).toEqual([])
    expect(execFileSync("find", [person.home, "-path", "*/sbx_*"]).toString()).toBe("")
  })

  it("withstands what root's sandboxes withstand", { timeout }, async () => {
    using groups = delegateGroups(person)
    // Folders of tests that are not asked for are made, and removed by nobody.
    await using temp = await TempFolder.make()
    chmodSync(temp.path, 0o777)
    const env = { WARREN_TEST_CGROUP_PARENT: groups.parent, WARREN_FORK_CRASHES: "2", TMPDIR: temp.path }
    const report = await testAs(person, attacks, env, new RegExp(`^(?:${attackNames.join("|")})`))
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(80)
    expect(processesOf(ids())).toEqual([])
  })

  it("shares ids where there are only those for one, and says so", { timeout }, async () => {
    await using few = await makePerson(slots)
    const report = await testAs(few, [ownCases], { WARREN_TEST_SLOTS: "1" })
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(3)
  })

  it("says what is missing where there are none, with the command that fixes it", { timeout }, async () => {
    await using nobody = await makePerson(0)
    const report = await testAs(nobody, ["ordinary-user.live.test.ts"], { WARREN_TEST_SLOTS: "0" })
    expect(report.failures).toEqual([])
    expect(report.passed).toBe(1)
  })
})

/** Cases of people who were given more, or less. */
function isForOthers(name: string): boolean {
  return /with groups|without groups|without subordinate ids/.test(name)
}
