import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { cutsOf } from "./mutation/cuts.ts"
import { reasonFor } from "./mutation/held.ts"
import { Jury } from "./mutation/jury.ts"
import type { Cut } from "./mutation/syntax-cuts.ts"
import { targets, type Target } from "./mutation/targets.ts"

/**
 * Takes out each check, header, range and rule of the files in `mutation/targets.ts`, one at a time, in a copy of this checkout, and has
 * the cheapest tests look: what none of them misses is told, and is a test to be written or a reason for `mutation/held.tsv`.
 * `npm run mutate [-- part of a file's name[:line[,line…]] …]`. Afterwards the same for what a sandbox is started with
 * (e2e/security/mutation.live.test.ts), unless a name was given. WARREN_MUTATE_QUICK=1 asks no test that needs a sandbox.
 */
const wanted = process.argv.slice(2).map((one) => {
  const [part = "", lines = ""] = one.split(":")
  return { part, lines: lines === "" ? undefined : lines.split(",").map(Number) }
})
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

const home = process.cwd()
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
  process.chdir(copy)
  await using jury = new Jury(copy)
  const unnoticed: string[] = []
  let count = 0
  let heldCount = 0
  for (const target of targets) {
    const asked = wanted.filter(({ part }) => target.file.includes(part))
    if (wanted.length > 0 && asked.length === 0) continue
    const isAsked = ({ line }: Cut): boolean =>
      asked.length === 0 || asked.some(({ lines }) => lines?.includes(line) ?? true)
    const cuts = cutsOf(readFileSync(target.file, "utf8"), target.kinds).filter(isAsked)
    const failing = await missing(jury, target)
    if (failing !== undefined) throw new Error(`${failing} fails as it is`)
    for (const cut of cuts) {
      const where = `${target.file}:${cut.line} ${cut.what}`
      const reason = reasonFor(target.file, cut.what)
      const by = reason === undefined ? await missedBy(jury, target, cut) : undefined
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
  process.chdir(home)
  rmSync(copy, { recursive: true, force: true })
}
if (wanted.length === 0) {
  const test = ["node_modules/vitest/vitest.mjs", "run", "e2e/security/mutation.live.test.ts"]
  const code = await run(process.execPath, test, { env: { ...process.env, WARREN_MUTATE: "1" }, stdio: "inherit" })
  if (code !== 0) process.exitCode = 1
}

/** The test that fails without it. */
async function missedBy(jury: Jury, target: Target, cut: Cut): Promise<string | undefined> {
  const whole = readFileSync(target.file)
  writeFileSync(target.file, cut.text)
  await jury.changed(target.file)
  try {
    return await missing(jury, target)
  } finally {
    writeFileSync(target.file, whole)
    await jury.changed(target.file)
  }
}

/** Those without a sandbox all at once, then the others one by one. */
async function missing(jury: Jury, { tests }: Target): Promise<string | undefined> {
  const isLive = (path: string): boolean => path.includes(".live.")
  const quick = tests.filter((path) => !isLive(path))
  const slow = isQuick ? [] : tests.filter(isLive)
  for (const some of [...(quick.length > 0 ? [quick] : []), ...slow.map((path) => [path])])
    if (await jury.isMissed(some)) return basename(some[0] ?? "")
  return undefined
}

function run(program: string, args: readonly string[], options: object = {}): Promise<number> {
  const child = spawn(program, args, options)
  return new Promise((done, reject) => {
    child.once("error", reject)
    child.once("close", (code) => done(code ?? 1))
  })
}
