import { readdirSync, readFileSync } from "node:fs"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, it } from "vitest"
import { exec } from "../init/exec.ts"
import type { SandboxId } from "../sandbox-spec.ts"
import type { ProcessDriver } from "./driver.ts"
import { allPids, environmentOf } from "./process-tree.ts"
import { processSubject, programs } from "./testing/subject.ts"

const kills = Number(process.env["WARREN_CRASHES"] ?? 20)
const never = new AbortController().signal
const subject = processSubject()

it(`a runner killed ${kills} times at any moment loses and leaves nothing`, { timeout: 300_000 }, async () => {
  await using folder = await TempFolder.make()
  const program = await bundleProgram(new URL("testing/life.ts", import.meta.url), folder)
  let adoptions = 0
  for (let round = 0; round < kills; round++) {
    const told = await crash(program, (round * 37) % 200)
    await using driver = await subject.open()
    try {
      adoptions += await check(driver, told)
    } finally {
      for (const id of readdirSync(subject.root)) if (id.startsWith("sbx_")) await driver.destroy(id as SandboxId)
    }
    // A keeper whose runner died in the middle of a start ends by itself, a moment later.
    await expect.poll(leftovers, { timeout: 5_000 }).toEqual([])
  }
  expect(adoptions).toBeGreaterThan(0)
})

/** Everything it had said is true, and what was running still is. How many those are. */
async function check(driver: ProcessDriver, told: ReadonlyMap<SandboxId, string>): Promise<number> {
  const running = new Set<SandboxId>()
  for await (const sandbox of driver.adopt(never)) {
    running.add(sandbox.id)
    const { stdout } = await exec(sandbox, { argv: ["sh", "-c", "cat id 2>/dev/null; echo alive"] })
    expect(stdout.toString()).toMatch(/alive\n$/)
    if (told.get(sandbox.id) === "wrote") expect(stdout.toString()).toBe(`${sandbox.id}\nalive\n`)
  }
  for (const [id, step] of told) {
    if (step === "started" || step === "wrote") expect([id, running.has(id)]).toEqual([id, true])
    if (step === "destroyed") expect(await driver.exists(id)).toBe(false)
  }
  return running.size
}

/** Runs a runner for a while and kills it. What it said last about each sandbox. */
async function crash(program: string, afterMs: number): Promise<Map<SandboxId, string>> {
  await using runner = new Program(program, [subject.root, JSON.stringify(programs)])
  expect(await runner.line()).toBe("ready -")
  await new Promise((resolve) => setTimeout(resolve, afterMs))
  runner.kill()
  const lines = (await runner.rest()).map((line) => line.split(" "))
  return new Map(lines.map(([step = "", id = ""]) => [id as SandboxId, step]))
}

function leftovers(): string[] {
  const files = readdirSync(subject.root).filter((name) => !name.startsWith("lock"))
  const others = allPids().filter((pid) => pid !== process.pid)
  const processes = others.filter((pid) => (commandLine(pid) + environmentOf(pid)).includes(`${subject.root}/sbx_`))
  return [...files, ...processes.map((pid) => `${pid} ${commandLine(pid)}`)]
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}
