import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { makePerson, processesOf, testAs, type Person } from "@warren/drivers/oci/testing/person.ts"
import { describe, expect, it } from "vitest"

const isRoot = process.getuid?.() === 0
const timeout = 300_000
const slot = 65_536
const here = "../../../user-plane/src/images"
const ordinaryUser = [
  "trees.live.test.ts",
  "sources.live.test.ts",
  "keepers.live.test.ts",
  "hostile-archives.live.test.ts",
].map((name) => `${here}/ordinary-user/${name}`)

/** Images of somebody without any right on this machine. */
describe.skipIf(!isRoot)("as an ordinary user", () => {
  it.each([1, 4])("images work with ids for %i sandboxes, and nothing stays", { timeout }, async (slots) => {
    await using person = await makePerson(slots * slot)
    const report = await testAs(person, ordinaryUser, { TMPDIR: person.home })
    expect(report.failures).toEqual([])
    expect(report.passed).toBeGreaterThan(60)
    expect(report.skipped).toEqual([])
    expect(leftBy(person)).toEqual([])
  })

  it("a process that makes images and is killed leaves what is used", { timeout }, async () => {
    await using person = await makePerson(2 * slot)
    const report = await testAs(person, [`${here}/crash.live.test.ts`], { TMPDIR: person.home })
    expect(report.failures).toEqual([])
    expect(report.passed).toBe(1)
    expect(leftBy(person)).toEqual([])
  })
})

/** Files and processes of the person's subordinate ids. */
function leftBy(person: Person): string[] {
  const granted = readFileSync("/etc/subuid", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .filter(([name]) => name === person.name)
    .map(([, first, count]) => ({ first: Number(first), count: Number(count) }))
  const range = granted.flatMap(({ first, count }) => ["-uid", `+${first - 1}`, "-uid", `-${first + count}`])
  const files = execFileSync("find", [person.home, ...range]).toString()
  return [...processesOf(granted), ...files.split("\n").filter(Boolean)]
}
