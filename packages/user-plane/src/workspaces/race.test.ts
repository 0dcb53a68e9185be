import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { systemClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { plainDisk } from "./disk.ts"
import type { WorkspaceFiles } from "./files.ts"
import { workspaceMigrations } from "./schema.ts"
import { Workspaces } from "./workspaces.ts"

/** 20,100 altogether; fewer of what syncs to the disk each time. */
const tries = (verb: string): number => (/write|move/.test(verb) ? 700 : 3_000)
const arch = process.arch

/** `exchange` needs renameat2, whose number the swapper knows for x86-64 only. */
describe.skipIf(arch !== "x64")("while a folder turns into a link that leads out, and back, without end", () => {
  let folder: TempFolder
  let database: Database
  let workspaces: Workspaces
  let files: WorkspaceFiles
  let top: string
  let swapper: ReturnType<typeof spawn>
  const outside = (): string => folder.at("outside")

  beforeAll(async () => {
    folder = await TempFolder.make()
    database = new Database(folder.at("warren.db"), { migrations: workspaceMigrations })
    workspaces = await Workspaces.open({
      database,
      clock: systemClock,
      log: silentLog,

      disk: plainDisk(folder.at("ws")),
    })
    await workspaces.create("raced", 0)
    files = workspaces.files("raced")
    top = workspaces.folderOf("raced")
    await mkdir(outside())
    await writeFile(`${outside()}/file`, "the secret outside")
    await mkdir(`${outside()}/sub`)
    await writeFile(`${outside()}/sub/only-outside`, "x")
    await mkdir(`${top}/door`)
    await symlink(outside(), `${top}/link`)
    const script = fileURLToPath(new URL("testing/swapper.pl", import.meta.url))
    swapper = spawn("perl", [script, `${top}/door`, `${top}/link`], { stdio: ["pipe", "pipe", "inherit"] })
    if (swapper.stdout) await once(swapper.stdout, "data")
  })
  afterAll(async () => {
    await endSwapper()
    await workspaces[Symbol.asyncDispose]()
    database.close()
    await folder[Symbol.asyncDispose]()
  })

  async function endSwapper(): Promise<void> {
    if (swapper.signalCode !== null) return
    const gone = once(swapper, "exit")
    swapper.kill("SIGKILL")
    await gone
  }

  /** What may not change, whatever is done inside. */
  async function outsideNow(): Promise<unknown> {
    const names = await readdir(outside(), { recursive: true })
    const { mtimeMs, ctimeMs } = await stat(outside())
    const { uid, mode } = await stat(`${outside()}/sub`)
    return { names, mtimeMs, ctimeMs, uid, mode, text: await readFile(`${outside()}/file`, "utf8") }
  }

  async function* text(value: string): AsyncGenerator<Uint8Array, void, void> {
    yield Buffer.from(value)
  }

  async function readAll(path: string): Promise<string> {
    await using file = await files.openRead(path)
    const chunks: Uint8Array[] = []
    for await (const chunk of file.bytes()) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  const verbs: Readonly<Record<string, (n: number) => Promise<unknown>>> = {
    write: (n) => files.write("door/file", text(`inside ${n}`)),
    read: () => readAll("door/file"),
    stat: async () => (await files.stat("door/file")).sizeBytes,
    list: async () => (await files.list("door/sub", 10)).map(({ name }) => name),
    mkdir: (n) => files.mkdir(`door/sub/new-${n % 50}`),
    "move out of it": (n) => files.move("door/file", `moved-${n % 10}`, true),
    "move into it": async (n) => {
      await files.write("source", text("inside"))
      return files.move("source", `door/moved-${n % 10}`, true)
    },
    "remove a file": () => files.remove("door/file", false),
    "remove a folder": () => files.remove("door/sub", true),
  }

  test.each(Object.keys(verbs))("nothing outside is read or touched: %s", { timeout: 180_000 }, async (verb) => {
    const triesMax = tries(verb)
    const before = await outsideNow()
    const counts = { done: 0, refused: 0 }
    for (let n = 0; n < triesMax; n++) {
      try {
        const answer = JSON.stringify(await verbs[verb]?.(n))
        expect(answer).not.toMatch(/secret|only-outside|^18$/)
        counts.done++
      } catch (thrown) {
        if (!(thrown instanceof Fault) || !["invalid", "not_found", "conflict"].includes(thrown.code)) throw thrown
        counts.refused++
      }
    }
    expect(await outsideNow()).toEqual(before)
    // Both happened: it really was raced.
    expect(counts.refused).toBeGreaterThan(triesMax / 50)
    if (verb === "write") expect(counts.done).toBeGreaterThan(triesMax / 50)
  })

  test("the folder can be removed with everything in it, and only that", async () => {
    const before = await outsideNow()
    await endSwapper()
    await workspaces.delete("raced")
    expect(await outsideNow()).toEqual(before)
  })
})
