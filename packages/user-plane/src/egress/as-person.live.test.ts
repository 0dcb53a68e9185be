import { makePerson, testAs } from "@warren/drivers/oci/testing/person.ts"
import { expect, it } from "vitest"

it("holds all of it for an ordinary user", { timeout: 180_000 }, async ({ skip }) => {
  if (process.getuid?.() !== 0) return skip("this is an ordinary user already")
  await using person = await makePerson(4 * 65_536)
  const report = await testAs(person, ["../../../user-plane/src/egress/sandbox.live.test.ts"])
  expect(report).toMatchObject({ failures: [], skipped: [] })
  expect(report.passed).toBeGreaterThanOrEqual(7)
})
