import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { failpoint, onFailpoint } from "./failpoint.ts"
import { TempFolder } from "./testing/temp-folder.ts"

const program = `
  import { failpoint } from ${JSON.stringify(new URL("failpoint.ts", import.meta.url).href)}
  for (const name of ["a/one", "b/two", "a/one", "a/one"]) {
    try { failpoint(name); console.log(name) } catch (failure) { console.log(failure.code ?? "", failure.message) }
  }`

function run(env: Readonly<Record<string, string>>): { signal: string | null; said: string } {
  const args = ["--import", "tsx", "--input-type=module", "--eval", program]
  const { signal, stdout } = spawnSync(process.execPath, args, { env: { ...process.env, ...env }, encoding: "utf8" })
  return { signal, said: stdout }
}

test("a process dies, or fails, at that very pass; otherwise nothing happens", async () => {
  await using folder = await TempFolder.make()
  const all = "a/one\nb/two\na/one\na/one\n"
  expect(run({})).toEqual({ signal: null, said: all })
  expect(run({ FAULT: "a/one:2" })).toEqual({ signal: "SIGKILL", said: "a/one\nb/two\n" })
  expect(run({ FAULT: "a/one:9" })).toEqual({ signal: null, said: all })
  const failed = run({ FAULT: "a/one:2:error", FAULT_FOLDER: folder.path })
  expect(failed.said).toBe("a/one\nb/two\nunavailable the failpoint a/one was asked for\na/one\n")
  expect(readFileSync(folder.at("passed"), "utf8")).toBe(all)
  expect(existsSync(folder.at("fired"))).toBe(true)
  // It has happened: one that is started again goes on.
  expect(run({ FAULT: "a/one:2", FAULT_FOLDER: folder.path })).toEqual({ signal: null, said: all })
  expect(run({ FAULT: "a/one:nonsense" }).said).toContain("invalid FAULT is name:n")
})

test("a test in the same process is told of every pass", () => {
  const passed: string[] = []
  {
    using _ = onFailpoint((name) => passed.push(name))
    failpoint("here/first")
  }
  failpoint("here/second")
  expect(passed).toEqual(["here/first"])
})
