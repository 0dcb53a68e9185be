import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { cutsOf } from "./mutation/cuts.ts"
import { reasonFor } from "./mutation/held.ts"
import type { Cut } from "./mutation/syntax-cuts.ts"
import { targets, type Target } from "./mutation/targets.ts"

/**
 * Takes out each check, header, range and rule of the files in `mutation/targets.ts`, one at a time, in a copy of this checkout, and has
 * the cheapest tests look: what none of them misses is told, and is a test to be written or a reason for `mutation/held.tsv`.
 * `npm run mutate [-- part of a file's name …]`. Afterwards the same for what a sandbox is started with
 * (e2e/security/mutation.live.test.ts), unless a name was given. WARREN_MUTATE_QUICK=1 asks no test that needs a sandbox.
 */
const runMs = 180_000
const wanted = process.argv.slice(2)
const isQuick = process.env["WARREN_MUTATE_QUICK"] === "1"
const kept = [
  "packages",
  "apps",
  "tools",
  "e2e",
  "launch",
  "init",
  "confine",
  "bench",
  "images",
  "dist",
  "docs",
  "packaging",
]
const files = ["package.json", "tsconfig.json", "vitest.config.ts", "package-lock.json"]

const copy = mkdtempSync(join(tmpdir(), "warren-mutants-"))
try {
  for (const name of [...kept, ...files]) {
    cpSync(name, join(copy, name), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith("node_modules"),
    })
  }
  // The same bytes, and links of the workspaces that lead into the copy.
  for (const folder of ["node_modules", "e2e/node_modules"])
    await run("cp", ["-al", resolve(folder), join(copy, folder)])
  const unnoticed: string[] = []
  let count = 0
  let heldCount = 0
  for (const target of targets.filter(
    ({ file }) => wanted.length === 0 || wanted.some((part) => file.includes(part)),
  )) {
    const cuts = cutsOf(readFileSync(target.file, "utf8"), target.kinds)
    if (await isMissed(target)) throw new Error(`${target.tests.join(" ")} fail as it is`)
    for (const cut of cuts) {
      const where = `${target.file}:${cut.line} ${cut.what}`
      const reason = reasonFor(target.file, cut.what)
      const by = reason === undefined ? await missedBy(target, cut) : undefined
      console.log(`${by ?? (reason === undefined ? "NOBODY" : "held")} ${where}`)
      if (reason !== undefined) heldCount++
      else if (by === undefined) unnoticed.push(where)
      count++
    }
  }
  console.log(`${count} defences taken out, ${heldCount} held otherwise, ${unnoticed.length} unnoticed`)
  for (const one of unnoticed) console.log(`  ${one}`)
  process.exitCode = unnoticed.length > 0 ? 1 : 0
} finally {
  rmSync(copy, { recursive: true, force: true })
}
if (wanted.length === 0) {
  const test = ["node_modules/vitest/vitest.mjs", "run", "e2e/security/mutation.live.test.ts"]
  const code = await run(process.execPath, test, { env: { ...process.env, WARREN_MUTATE: "1" }, stdio: "inherit" })
  if (code !== 0) process.exitCode = 1
}

/** The test that fails without it. */
async function missedBy(target: Target, cut: Cut): Promise<string | undefined> {
  const path = join(copy, target.file)
  const whole = readFileSync(path)
  writeFileSync(path, cut.text)
  try {
    return await isMissed(target)
  } finally {
    writeFileSync(path, whole)
  }
}

/** Those without a sandbox all at once, then the others one by one. */
async function isMissed({ tests }: Target): Promise<string | undefined> {
  const isLive = (path: string): boolean => path.includes(".live.")
  const quick = tests.filter((path) => !isLive(path))
  const slow = isQuick ? [] : tests.filter(isLive)
  for (const some of [...(quick.length > 0 ? [quick] : []), ...slow.map((path) => [path])]) {
    const args = ["node_modules/vitest/vitest.mjs", "run", "--bail=1", ...some]
    if ((await run(process.execPath, args, { cwd: copy, stdio: "ignore" })) !== 0) return basename(some[0] ?? "")
  }
  return undefined
}

/** Ended after a while: a test that waits for ever for what is not there any more has noticed, too. */
function run(program: string, args: readonly string[], options: object = {}): Promise<number> {
  const child = spawn(program, args, { ...options, timeout: runMs, killSignal: "SIGKILL" })
  return new Promise((done, reject) => {
    child.once("error", reject)
    child.once("close", (code) => done(code ?? 1))
  })
}
