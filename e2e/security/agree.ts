import { basename } from "node:path"
import { expect } from "vitest"
import { differences, type PolicyName } from "../probes/policy.ts"
import type { Finding } from "../probes/probe.ts"
import { record } from "./results.ts"

/** Of one file of tests: each runs in a process of its own. */
const all = { cases: 0, bad: 0, ways: 0 }

/** What was found is what the policy says, to the last attempt; whatever is not is told. */
export function agree(findings: readonly Finding[], policy: PolicyName): void {
  const found = differences(findings, policy)
  all.cases += findings.length
  all.bad += found.length
  all.ways++
  const file = basename(expect.getState().testPath ?? "unknown").replace(/(\.live)?\.test\.ts$/, "")
  record(`probes-${file}`, all)
  expect(found, found.join("; ")).toEqual([])
}
