import { spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, test } from "vitest"
import { TempFolder } from "./testing/temp-folder.ts"

const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8").trim()
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href
const debuggers = pathToFileURL(join(import.meta.dirname, "debugger.ts")).href

/** What a core holds of a text that a program had in memory when it crashed; undefined: there is no core. */
async function crashed(text: string, before: string): Promise<boolean | undefined> {
  await using folder = await TempFolder.make()
  // Put together in there, so that it is on no command line.
  const program = `${before}; globalThis.kept = Buffer.from(process.argv[1] + process.argv[2]); process.abort()`
  const node = ["--import", tsx, "--input-type=module", "-e", program, text.slice(0, 20), text.slice(20)]
  const limited = ["-c", 'ulimit -c unlimited && exec "$0" "$@"', process.execPath, ...node]
  spawnSync("sh", limited, { cwd: folder.path, stdio: "ignore" })
  const [core] = readdirSync(folder.path)
  return core === undefined ? undefined : readFileSync(folder.at(core)).includes(text)
}

test("a crash leaves nothing of what was in memory, also where cores are wanted", async ({ skip }) => {
  if (pattern.startsWith("|") || pattern.includes("/")) return skip(`cores go elsewhere here: ${pattern}`)
  const text = randomBytes(20).toString("hex")
  const as = await crashed(text, "")
  if (as === undefined) return skip("this kernel writes no cores")
  expect(as).toBe(true)
  expect(await crashed(text, `(await import(${JSON.stringify(debuggers)})).refuseDebuggers()`)).not.toBe(true)
})
