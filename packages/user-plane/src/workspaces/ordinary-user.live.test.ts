import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { makePerson, testAs } from "@warren/drivers/oci/testing/person.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { expect, test } from "vitest"
import type { WorkspaceFiles } from "./files.ts"
import { workspaceMigrations } from "./schema.ts"
import { Workspaces } from "./workspaces.ts"

const never = new AbortController().signal
const dist = resolve(import.meta.dirname, "../../../../dist")
const programs = { init: join(dist, "warren-init"), launch: join(dist, "warren-launch") }
const isRoot = process.getuid?.() === 0

async function start(driver: Driver, root: string, from: string, scope: Scope): Promise<Sandbox> {
  const limits = { ...defaultLimits, mayBeUnlimited: true as const, diskBytes: 0 }
  const mounts = [{ from, to: "/workspace", isReadOnly: false }]
  const spec = specOf(await hostImage(join(root, "host-image")), { limits, mounts })
  await driver.create(spec, never)
  scope.defer(() => driver.destroy(spec.id))
  return driver.start(spec.id, never)
}

async function run(sandbox: Sandbox, command: string): Promise<string> {
  const { stdout, stderr } = await exec(sandbox, { argv: ["sh", "-c", command], cwd: "/workspace", timeoutMs: 30_000 })
  return (stdout.toString() + stderr.toString()).trim()
}

async function* bytes(value: string): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from(value)
}

async function changeEachOthers(files: WorkspaceFiles, another: () => Promise<Sandbox>): Promise<void> {
  const [first, second] = [await another(), await another()]
  expect(await run(first, "umask 077; echo two >> sub/outside && mkdir -p a/b && echo deep > a/b/c && echo ok")).toBe(
    "ok",
  )
  expect(await run(second, "echo more >> a/b/c && echo new > a/b/d && rm sub/outside && cat a/b/c")).toBe("deep\nmore")
  await files.write("a/b/c", bytes("replaced"))
  expect(await run(first, "cat a/b/c; echo ' again' >> a/b/c; cat a/b/c")).toBe("replacedreplaced again")
  expect(await files.remove("a", true)).toBe(true)
  expect(await run(second, "ls")).toBe("sub")
  // What a program closes to others by itself stays closed; taking the whole away works all the same.
  await run(second, "mkdir -m 700 closed && echo x > closed/file && chmod 000 closed/file")
  await expect(files.remove("closed", true)).rejects.toMatchObject({ code: "forbidden" })
}

test.skipIf(isRoot)("without root, a workspace is the same inside and outside", async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ww-")))
  await using scope = new Scope()
  scope.defer(() => rmSync(root, { recursive: true, force: true }))
  const driver = scope.use(await openOciDriver({ root: join(root, "oci"), programs, log: silentLog }))
  const database = scope.use(new Database(join(root, "warren.db"), { migrations: workspaceMigrations }))
  const { disk } = driver
  const workspaces = scope.use(await Workspaces.open({ database, clock: systemClock, log: silentLog, disk }))
  expect((await workspaces.create("a")).limit).toBe("api")
  const files = workspaces.files("a")
  await files.write("sub/outside", bytes("one\n"))
  const from = workspaces.hold("a", "ses_1")
  await changeEachOthers(files, () => start(driver, root, from, scope))
  await files.write("sub/outside", bytes("two\n"))
  expect((await files.stat("sub/outside")).mode).toBe(0o666)
  expect((await workspaces.measure("a")).usedBytes).toBeGreaterThan(0)
  expect(await workspaces.delete("a", { isForced: true })).toBe(true)
})

test.runIf(isRoot)("the same, by somebody without any right on this machine", { timeout: 180_000 }, async () => {
  await using person = await makePerson(4 * 65_536)
  const report = await testAs(person, ["../../../user-plane/src/workspaces/ordinary-user.live.test.ts"])
  expect(report.failures).toEqual([])
  expect(report.passed).toBe(1)
})
