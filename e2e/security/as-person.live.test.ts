import { delegateGroups, makePerson, testAs } from "@warren/drivers/oci/testing/person.ts"
import { expect, it } from "vitest"

const isRoot = process.getuid?.() === 0
const slots = 65_536
const here = "../../../../e2e/security"

it.skipIf(!isRoot)("is as shut by an ordinary user's hands", { timeout: 240_000 }, async () => {
  await using person = await makePerson(16 * slots)
  using groups = delegateGroups(person)
  const files = ["parity.live.test.ts", "process-parity.live.test.ts"].map((name) => `${here}/${name}`)
  const report = await testAs(person, files, { WARREN_TEST_CGROUP_PARENT: groups.parent })
  expect(report.failures).toEqual([])
  expect(report.passed).toBeGreaterThan(25)
  // What only root's machine can be compared with, and what this driver's sandboxes lack.
  expect(report.skipped.filter((name) => !/^the attempts|terminal|without a filter/.test(name))).toEqual([])
})
