import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { prepare } from "./prepare.ts"

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly numFailedTestSuites: number
}

await prepare("test")
const folder = await mkdtemp(join(tmpdir(), "warren-test-"))
const file = join(folder, "report.json")
try {
  const args = [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${file}`,
  ]
  const child = spawn(process.execPath, [...args, ...process.argv.slice(2)], { stdio: "inherit" })
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? 1)))
  const report = JSON.parse(await readFile(file, "utf8")) as Report
  const skipped = report.numPendingTests + report.numTodoTests
  // A file that does not even load has no tests to fail; it must not look like success.
  const failed =
    report.numFailedTests === 0 && code !== 0 ? Math.max(1, report.numFailedTestSuites) : report.numFailedTests
  console.log(`${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`)
  process.exitCode = failed > 0 ? 1 : code
} finally {
  await rm(folder, { recursive: true, force: true })
}
