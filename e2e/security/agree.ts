import { expect } from "vitest"
import { differences, type PolicyName } from "../probes/policy.ts"
import type { Finding } from "../probes/probe.ts"

/** What was found is what the policy says, to the last attempt; whatever is not is told. */
export function agree(findings: readonly Finding[], policy: PolicyName): void {
  const found = differences(findings, policy)
  expect(found, found.join("; ")).toEqual([])
}
