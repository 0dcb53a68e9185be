import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { hostState, isDamage, isLeft, lastingChanges } from "./host.ts"
import { prepare } from "./prepare.ts"

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: readonly FileReport[]
}

interface FileReport {
  readonly name: string
  readonly status: string
  readonly message: string
  readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
}

/** More files than this do not fail by chance. */
const againMax = 5

/** Set where nobody else uses the machine: then whatever is left behind fails the run, not only damage. */
const isAlone = process.env["WARREN_TEST_ALONE"] === "1"

await prepare("test")
const folder = await mkdtemp(join(tmpdir(), "warren-test-"))
const before = hostState()
try {
  const first = await run("first", process.argv.slice(2))
  const failing = first.report.testResults.filter(({ status }) => status !== "passed")
  const isWorthIt = failing.length > 0 && failing.length <= againMax
  const second = isWorthIt ? await again(failing) : undefined
  const left = (await lastingChanges(before)).filter(isLeft)
  for (const change of left) console.log(`LEFT BEHIND: ${change}`)
  tell(first, failing, second, left.filter((change) => isAlone || isDamage(change)).length)
} finally {
  await rm(folder, { recursive: true, force: true })
}

interface Run {
  readonly code: number
  readonly report: Report
}

async function run(name: string, args: readonly string[]): Promise<Run> {
  const file = join(folder, `${name}.json`)
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
  const all = ["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args]
  const child = spawn(process.execPath, all, { stdio: "inherit" })
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? 1)))
  return { code, report: JSON.parse(await readFile(file, "utf8")) as Report }
}

/**
 * Thousands of tests with real processes on a busy machine: now and then one meets a moment it was not written for. What failed is run
 * once more, with nothing beside it; what fails then has failed. What passes is named all the same: it is a defect, of the test or of what it tests.
 */
function again(failing: readonly FileReport[]): Promise<Run> {
  const files = failing.map(({ name }) => relative(process.cwd(), name))
  console.log(`\nAgain, alone: ${files.join(", ")}\n`)
  return run("second", ["--no-file-parallelism", ...files])
}

function tell(first: Run, failing: readonly FileReport[], second: Run | undefined, harm: number): void {
  const { report } = first
  const replaced = second ? failing.flatMap(({ assertionResults }) => assertionResults) : []
  const passed =
    report.numPassedTests -
    replaced.filter(({ status }) => status === "passed").length +
    (second?.report.numPassedTests ?? 0)
  const skipped = report.numPendingTests + report.numTodoTests
  const last = second ?? first
  // A file that does not even load has no tests to fail; it must not look like success.
  const failed = harm + (last.code === 0 ? 0 : Math.max(1, last.report.numFailedTests))
  if (second && failed === 0) {
    for (const { name, assertionResults, message } of failing) {
      const names = assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName)
      console.log(`FLAKY: ${relative(process.cwd(), name)}: ${names.join("; ") || message}`)
    }
  }
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`)
  process.exitCode = failed > 0 ? 1 : last.code
}
