import { readFileSync } from "node:fs"
import { lackOf, type Driver, type Sandbox } from "@warren/drivers/driver.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { Files } from "@warren/drivers/init/files.ts"
import { Shell } from "@warren/drivers/init/shell.ts"
import { processSubject } from "@warren/drivers/process/testing/subject.ts"
import { defaultLimits, type SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, expect, it } from "vitest"
import { filterDifferences } from "../probes/filter-table.ts"
import { parse, Probe, type Finding } from "../probes/probe.ts"
import { agree } from "./agree.ts"

const never = new AbortController().signal
const subject = processSubject()
let probe: Probe
let driver: Driver
let sandbox: Sandbox
let id: SandboxId

beforeAll(async () => {
  probe = await Probe.open()
  driver = await subject.open()
  const spec = specOf(await subject.image(), { limits: { ...defaultLimits, diskBytes: 0 } })
  id = spec.id
  await driver.create(spec, never)
  sandbox = await driver.start(id, never)
  await new Files(sandbox).write("/workspace/probe", readFileSync(probe.path), { mode: 0o755 })
})
afterAll(async () => {
  await driver.destroy(id)
  await driver[Symbol.asyncDispose]()
  await probe[Symbol.asyncDispose]()
})

const run = async (more: object = {}): Promise<readonly Finding[]> => {
  const result = await exec(sandbox, { argv: ["./probe", ...probe.words], cwd: "/workspace", ...more })
  return parse(result.stdout.toString())
}

it("a command is as shut as the policy says", async () => {
  agree(await run(), "process-strict")
})

it("every system call is answered as written down", async () => {
  const { stdout } = await exec(sandbox, { argv: ["./probe", "--filter"], cwd: "/workspace" })
  const name = process.getuid?.() === 0 ? "process-strict" : "process-person"
  expect(filterDifferences(stdout.toString(), name)).toEqual([])
})

it("a shell is as shut", async () => {
  const shell = await Shell.open(sandbox, { cwd: "/workspace" })
  const { output } = await shell.run(["./probe", ...probe.words].map((word) => `'${word}'`).join(" "))
  agree(parse(output.toString()), "process-strict")
})

it("a terminal is as shut", async ({ skip }) => {
  const lack = lackOf(driver, "terminals")
  if (lack !== undefined) return skip(lack)
  agree(await run({ pty: { cols: 80, rows: 24 } }), "process-strict")
})

it("is as shut after a stop", async () => {
  await driver.stop(id)
  sandbox = await driver.start(id, never)
  agree(await run(), "process-strict")
})
