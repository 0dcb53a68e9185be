import { expect, test } from "vitest"
import { differences, readPolicy, type PolicyName } from "./policy.ts"
import { parse, type Finding } from "./probe.ts"

const names: readonly PolicyName[] = ["oci-strict", "oci-dev", "oci-dev-root", "process-strict"]

/** What a sandbox would say that is exactly as its policy. */
const faithful = (name: PolicyName): Finding[] =>
  readPolicy(name).map(({ id, must }) => ({ id, verdict: must === "OPEN" ? "OPEN" : "SHUT", detail: "" }))

test.each(names)("%s agrees with itself, and has a reason for whatever is open", (name) => {
  expect(differences(faithful(name), name)).toEqual([])
})

test.each(names)("%s knows the same attempts as the others", (name) => {
  expect(readPolicy(name).map(({ id }) => id)).toEqual(readPolicy("oci-strict").map(({ id }) => id))
})

test("one attempt that comes to something else is told, and so is one that is missing or new", () => {
  const all = faithful("oci-strict")
  const [first, ...others] = all
  if (!first) throw new Error("the policy is empty")
  const told = (changed: readonly Finding[]): readonly string[] => differences(changed, "oci-strict")
  expect(told([{ ...first, verdict: "OPEN" }, ...others])).toEqual([`${first.id} is OPEN (), not SHUT`])
  expect(told([{ ...first, verdict: "HUNG" }, ...others])).toEqual([`${first.id} is HUNG (), not SHUT`])
  expect(told([{ ...first, verdict: "ABSENT" }, ...others])).toEqual([])
  expect(told(others)).toEqual([`${first.id} was not tried`])
  expect(told([...all, { id: "new.one", verdict: "SHUT", detail: "" }])).toEqual(["new.one is SHUT and in no policy"])
})

test("findings count only when they are all there", () => {
  expect(parse("a.b|a|OPEN|x|y\r\nend|end|SHUT|\r\n")).toEqual([{ id: "a.b", verdict: "OPEN", detail: "x|y" }])
  expect(() => parse("a.b|a|OPEN|\n")).toThrow(/did not come to its end/)
})
