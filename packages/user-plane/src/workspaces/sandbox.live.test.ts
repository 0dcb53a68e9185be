import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import type { Disk, Driver, Sandbox } from "@warren/drivers/driver.ts"
import { exec, Execution } from "@warren/drivers/init/exec.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { defaultLimits, type Image } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { plainDisk } from "./disk.ts"
import { workspaceMigrations } from "./schema.ts"
import { Workspaces } from "./workspaces.ts"

const never = new AbortController().signal
const dist = resolve(import.meta.dirname, "../../../../dist")
const programs = { init: join(dist, "warren-init"), launch: join(dist, "warren-launch") }
const isRoot = process.getuid?.() === 0

/** Only root maps owners: then a workspace is the same to every sandbox and to us. */
describe.skipIf(!isRoot)("a workspace in sandboxes", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ww-")))
  const scope = new Scope()
  let disk: Disk
  let driver: Driver
  let image: Image
  let database: Database

  beforeAll(async () => {
    const oci = scope.use(await openOciDriver({ root: join(root, "oci"), programs, log: silentLog }))
    driver = oci
    disk = oci.disk
    image = await hostImage(join(root, "host-image"))
    database = scope.use(new Database(join(root, "warren.db"), { migrations: workspaceMigrations }))
  })
  afterAll(async () => {
    await scope.close()
    rmSync(root, { recursive: true, force: true })
  })

  const open = (kind: string): Promise<Workspaces> => {
    const where = kind === "limited" ? disk : plainDisk(join(root, "plain"))
    return Workspaces.open({ database, clock: systemClock, log: silentLog, disk: where })
  }

  async function start(from: string): Promise<Sandbox> {
    const limits = {
      ...defaultLimits,
      mayBeUnlimited: true as const,
      ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }),
    }
    const spec = specOf(image, { limits, mounts: [{ from, to: "/workspace", isReadOnly: false }] })
    await driver.create(spec, never)
    scope.defer(() => driver.destroy(spec.id))
    return driver.start(spec.id, never)
  }

  async function run(sandbox: Sandbox, command: string): Promise<string> {
    const { stdout, stderr } = await exec(sandbox, {
      argv: ["sh", "-c", command],
      cwd: "/workspace",
      timeoutMs: 30_000,
    })
    return (stdout.toString() + stderr.toString()).trim()
  }

  async function* bytes(value: string | Uint8Array): AsyncGenerator<Uint8Array, void, void> {
    yield Buffer.from(value)
  }

  test.each(["limited", "plain"])("what is written on either side can be changed on the other: %s", async (kind) => {
    await using workspaces = await open(kind)
    await workspaces.create(kind)
    const files = workspaces.files(kind)
    await files.write("sub/from-outside", bytes("one\n"))
    await files.mkdir("made-outside")
    const from = workspaces.hold(kind, "ses_1")
    const [first, second] = [await start(from), await start(from)]
    expect(await run(first, "id -u; stat -c %u:%g sub sub/from-outside made-outside . | sort -u")).toBe(
      "1000\n1000:1000",
    )
    const inside =
      "echo two >> sub/from-outside && echo new > made-outside/from-inside && mkdir -p a/b && echo deep > a/b/c && echo ok"
    expect(await run(first, inside)).toBe("ok")
    expect(
      await run(second, "cat sub/from-outside; echo three >> made-outside/from-inside; rm a/b/c; rmdir a/b; echo ok"),
    ).toBe("one\ntwo\nok")
    expect(statSync(join(from, "made-outside/from-inside"))).toMatchObject({ uid: 1000, gid: 1000 })
    await files.write("made-outside/from-inside", bytes("replaced"))
    expect(
      await run(first, "cat made-outside/from-inside; echo ' and more' >> made-outside/from-inside; echo ok"),
    ).toBe("replacedok")
    expect(await files.remove("sub", true)).toBe(true)
    expect(await run(second, "ls")).toBe("a\nmade-outside")
    await expect(workspaces.delete(kind)).rejects.toMatchObject({ code: "conflict" })
    workspaces.release("ses_1")
    expect(await workspaces.delete(kind)).toBe(true)
  })

  test("what a sandbox may write ends at the limit, and what we may, too", async () => {
    await using workspaces = await open("limited")
    expect(disk.unlimited).toBeUndefined()
    const { limit } = await workspaces.create("small", 16 * 1024 * 1024)
    expect(limit).toBe("disk")
    const sandbox = await start(workspaces.folderOf("small"))
    expect(await run(sandbox, "head -c 40000000 /dev/zero > large; sync")).toMatch(/quota|space/i)
    expect(statSync(join(workspaces.folderOf("small"), "large")).size).toBeLessThanOrEqual(16 * 1024 * 1024)
    const more = workspaces.files("small").write("more", bytes(Buffer.alloc(4_000_000, 1)))
    await expect(more).rejects.toMatchObject({ code: "limit" })
    expect(readdirSync(workspaces.folderOf("small"))).toEqual(["large"])
    await run(sandbox, "rm large; sync")
    await workspaces.files("small").write("more", bytes(Buffer.alloc(1_000_000, 1)))
    expect((await workspaces.measure("small")).usedBytes).toBeLessThan(16 * 1024 * 1024)
    // Forced: it is gone from under the sandbox, which lives.
    workspaces.hold("small", "ses_9")
    expect(await workspaces.delete("small", { isForced: true })).toBe(true)
    expect(await run(sandbox, "cd /; echo alive")).toBe("alive")
  })

  test("whoever stands in a folder that we remove does not get out of the workspace by it", async () => {
    await using workspaces = await open("limited")
    await workspaces.create("left")
    writeFileSync(join(disk.folder, "left", "staging", "draft"), "secret")
    const sandbox = await start(workspaces.folderOf("left"))
    await run(sandbox, "mkdir -p stand/here")
    const script =
      "cd stand/here; echo ready; read go; ls -a .. ../.. ../../.. ../../../staging; cat ../../staging/draft ../draft; true"
    await using standing = await Execution.start(sandbox, {
      argv: ["sh", "-c", script],
      cwd: "/workspace",
      stdin: true,
    })
    const output = standing.output()
    let said = String((await output.next()).value?.bytes)
    await workspaces.files("left").remove("stand", true)
    await standing.write(Buffer.from("go\n"))
    for await (const { bytes: piece } of output) said += piece.toString()
    expect(said).toContain("ready")
    expect(said).not.toMatch(/secret\n|^draft|^staging|^files/m)
    expect(readdirSync(workspaces.folderOf("left"))).toEqual([])
  })

  test("what a sandbox leaves behind leads us nowhere", async () => {
    await using workspaces = await open("limited")
    await workspaces.create("trap")
    const sandbox = await start(workspaces.folderOf("trap"))
    await run(sandbox, "ln -s /etc etc; ln -s /etc/hostname name; mkfifo pipe; mkdir -m 000 closed; ln -s . here")
    const files = workspaces.files("trap")
    for (const path of ["etc/hostname", "name", "pipe", "here/name"]) {
      await expect(files.openRead(path)).rejects.toMatchObject({ code: "invalid" })
    }
    await files.write("name", bytes("ours"))
    expect(readFileSync("/etc/hostname", "utf8")).not.toBe("ours")
    expect((await files.list("", 10)).map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "closed folder",
      "etc link",
      "here link",
      "name file",
      "pipe other",
    ])
    expect(await workspaces.delete("trap")).toBe(true)
  })
})
