import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Finding } from "./probe.ts"

/** What an attempt must come to. `open` is a decision, and every decision has a reason. */
interface Row {
  readonly id: string
  /** `EITHER`: runtimes differ, and it makes no difference; why not is the reason. */
  readonly must: "OPEN" | "SHUT" | "EITHER"
  readonly reason: string
}

export type PolicyName = "oci-strict" | "oci-dev" | "oci-dev-root" | "process-strict"

/** Rewrites the file from what was found, keeping the reasons: for whoever adds attempts. Then read the difference. */
const isWriting = process.env["WARREN_PROBE_WRITE"] === "1"

/** Every attempt that came to something else than the policy says, and every one that only one of them knows. */
export function differences(findings: readonly Finding[], name: PolicyName): readonly string[] {
  if (isWriting) write(findings, name)
  const found = new Map(findings.map((finding) => [finding.id, finding]))
  const policy = readPolicy(name)
  const known = new Set(policy.map(({ id }) => id))
  return [
    ...policy.flatMap(({ id, must, reason }) => {
      const finding = found.get(id)
      if (!finding) return [`${id} was not tried`]
      const unexplained = must !== "SHUT" && reason === "" ? [`${id} is open without a reason`] : []
      const is = finding.verdict === "ABSENT" ? "SHUT" : finding.verdict
      return is === must || must === "EITHER"
        ? unexplained
        : [`${id} is ${is} (${finding.detail}), not ${must}`, ...unexplained]
    }),
    ...findings.filter(({ id }) => !known.has(id)).map(({ id, verdict }) => `${id} is ${verdict} and in no policy`),
  ]
}

export function readPolicy(name: PolicyName): readonly Row[] {
  const [, ...lines] = readFileSync(pathOf(name), "utf8").trim().split("\n")
  return lines.map((line) => {
    const [id = "", must = "", ...reason] = line.split(",")
    if (must !== "OPEN" && must !== "SHUT" && must !== "EITHER") throw new Error(`${name}: what is "${line}"?`)
    return { id, must, reason: reason.join(",") }
  })
}

function write(findings: readonly Finding[], name: PolicyName): void {
  const before = new Map(rowsIfAny(name).map((row) => [row.id, row]))
  const lines = findings.map(({ id, verdict }) => {
    const row = before.get(id)
    if (row?.must === "EITHER") return `${id},EITHER,${row.reason}`
    const isOpen = verdict === "OPEN" || verdict === "HUNG"
    return `${id},${isOpen ? "OPEN" : "SHUT"},${isOpen ? (row?.reason ?? "") : ""}`
  })
  writeFileSync(pathOf(name), ["id,must,reason", ...lines, ""].join("\n"))
}

function rowsIfAny(name: PolicyName): readonly Row[] {
  try {
    return readPolicy(name)
  } catch {
    return []
  }
}

function pathOf(name: PolicyName): string {
  return join(import.meta.dirname, "policy", `${name}.csv`)
}
