import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { constants } from "node:os"
import { archOf, archs } from "@warren/drivers/oci/seccomp/syscalls.ts"

export type FilterName = "oci-strict" | "oci-dev" | "process-strict" | "process-person"

const isWriting = process.env["WARREN_PROBE_WRITE"] === "1"

/**
 * What each system call must be answered with, written down a second time: a call that is moved from one list to another by mistake is
 * seen here, also where the kernel would refuse it for another reason.
 */
export function filterDifferences(said: string, name: FilterName, by: "us" | "runtime" = "us"): readonly string[] {
  const found = verdicts(said)
  if (isWriting && by === "us")
    writeFileSync(pathOf(name), `call,verdict\n${[...found].map((row) => row.join(",")).join("\n")}\n`)
  const wanted = new Map(
    readFileSync(pathOf(name), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(",") as [string, string]),
  )
  const names = new Set([...found.keys(), ...wanted.keys()])
  return (
    [...names]
      .filter((call) => found.get(call) !== wanted.get(call))
      // A runtime that compiles the table itself has fewer words for "no", and may not know the youngest calls.
      .filter((call) => by === "us" || found.get(call) === "ALLOW")
      .map((call) => `${call} is ${found.get(call) ?? "not tried"}, not ${wanted.get(call) ?? "known"}`)
  )
}

/** By name: numbers differ from machine to machine. What has no name here is what no kernel of ours knows: all of it one row. */
function verdicts(said: string): ReadonlyMap<string, string> {
  const lines = said.replaceAll("\r", "").trim().split("\n")
  if (lines.pop() !== "end|0") throw new Error(`the filter was not told to its end: ${said.slice(-300)}`)
  const names = new Map([...facts().numbers].map(([call, number]) => [String(number), call]))
  const rows = lines.map((line) => {
    const [asked = "", errno = ""] = line.split("|")
    const call = /^\d+$/.test(asked) ? (names.get(asked) ?? "unknown") : asked
    return [call, wordOf(Number(errno))] as const
  })
  const unknown = new Set(rows.filter(([call]) => call === "unknown").map(([, verdict]) => verdict))
  const known = rows.filter(([call]) => call !== "unknown").toSorted(([left], [right]) => (left < right ? -1 : 1))
  return new Map([...known, ["unknown", [...unknown].join(" ")]])
}

function wordOf(errno: number): string {
  if (errno === 0) return "ALLOW"
  return Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? String(errno)
}

function facts() {
  const arch = archOf(process.arch)
  if (arch === undefined) throw new Error(`there is no filter for ${process.arch}`)
  return archs[arch]
}

function pathOf(name: FilterName): string {
  return join(import.meta.dirname, "policy", `filter-${name}-${process.arch}.csv`)
}
