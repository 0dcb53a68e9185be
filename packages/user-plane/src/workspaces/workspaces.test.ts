import { execFileSync } from "node:child_process"
import {
  chmodSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { workspaceCalls } from "@warren/protocol/user-plane/workspaces.ts"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { plainDisk } from "./disk.ts"
import type { WorkspaceFiles, WriteOptions } from "./files.ts"
import { workspaceHandlers } from "./handlers.ts"
import { placeOf } from "./place.ts"
import { workspaceMigrations } from "./schema.ts"
import { Workspaces } from "./workspaces.ts"

const context = { signal: new AbortController().signal, caller: { name: "anna" } }
const code = (expected: string): unknown => expect.objectContaining({ code: expected })
let folder: TempFolder
let database: Database
let clock: ManualClock
let lines: string[]
let workspaces: Workspaces

const open = (): Promise<Workspaces> =>
  Workspaces.open({
    database,
    clock,
    log: createLog((line) => lines.push(line)),

    disk: plainDisk(folder.at("ws")),
  })

beforeEach(async () => {
  folder = await TempFolder.make()
  database = new Database(folder.at("warren.db"), { migrations: workspaceMigrations })
  clock = new ManualClock()
  lines = []
  workspaces = await open()
})
afterEach(async () => {
  await workspaces[Symbol.asyncDispose]()
  database.close()
  await folder[Symbol.asyncDispose]()
})

describe("a workspace", () => {
  test("is made once, found, listed by name in pages, and deleted", async () => {
    const calls = workspaceHandlers(workspaces)
    for (const name of ["b", "a", "c"]) await calls["workspace.create"]({ name }, context)
    await expect(calls["workspace.create"]({ name: "a" }, context)).rejects.toEqual(code("conflict"))
    const first = await calls["workspace.list"]({ limit: 2 }, context)
    const second = await calls["workspace.list"]({ limit: 2, cursor: first.nextCursor }, context)
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(["a", "b", "c"])
    expect(second.nextCursor).toBeUndefined()
    expect(workspaceCalls["workspace.list"].out.parse(first)).toEqual(first)
    expect(first.items[0]).toMatchObject({ limit: "api", limitBytes: 10 * 2 ** 30, holders: [] })
    expect(await calls["workspace.delete"]({ name: "a", force: false }, context)).toEqual({ isDeleted: true })
    expect(await calls["workspace.delete"]({ name: "a", force: false }, context)).toEqual({ isDeleted: false })
    await expect(calls["workspace.get"]({ name: "a" }, context)).rejects.toEqual(code("not_found"))
    expect(readdirSync(folder.at("ws")).toSorted()).toEqual(["b", "c"])
  })

  test("is made once when several ask for it at once", async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => workspaces.ensure("shared")))
    expect(new Set(all.map(({ createdAt }) => createdAt)).size).toBe(1)
    const made = await Promise.allSettled(Array.from({ length: 5 }, () => workspaces.create("other")))
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  })

  test("is seen by nobody else on the machine, and owned by whoever works inside", async () => {
    await workspaces.create("a")
    expect(statSync(folder.at("ws")).mode & 0o777).toBe(0o700)
    expect(statSync(folder.at("ws", "a")).mode & 0o777).toBe(0o700)
    if (process.getuid?.() === 0) expect(statSync(workspaces.folderOf("a"))).toMatchObject({ uid: 1000, gid: 1000 })
  })

  test("is not deleted while a session has it, unless forced", async () => {
    await workspaces.create("a")
    expect(workspaces.hold("a", "ses_1")).toBe(workspaces.folderOf("a"))
    workspaces.hold("a", "ses_1")
    workspaces.hold("a", "ses_2")
    expect(workspaces.get("a").holders).toEqual(["ses_1", "ses_2"])
    await expect(workspaces.delete("a")).rejects.toEqual(code("conflict"))
    workspaces.release("ses_1")
    await expect(workspaces.delete("a")).rejects.toEqual(code("conflict"))
    workspaces.release("ses_2")
    workspaces.hold("a", "ses_3")
    expect(await workspaces.delete("a", { isForced: true })).toBe(true)
    expect(() => workspaces.hold("a", "ses_3")).toThrow(expect.objectContaining({ code: "not_found" }))
  })

  test("is measured when asked for, and again for lists once that is old", async () => {
    await workspaces.create("a")
    writeFileSync(join(workspaces.folderOf("a"), "large"), Buffer.alloc(1_000_000, 1))
    const { usedBytes = 0 } = await workspaces.measure("a")
    expect(usedBytes).toBeGreaterThan(1_000_000)
    writeFileSync(join(workspaces.folderOf("a"), "larger"), Buffer.alloc(2_000_000, 1))
    expect(workspaces.list("", 10)[0]?.usedBytes).toBe(usedBytes)
    await clock.advance(60_000)
    expect(workspaces.list("", 10)[0]?.usedBytes).toBe(usedBytes)
    await workspaces[Symbol.asyncDispose]()
    expect(workspaces.list("", 10)[0]?.usedBytes).toBeGreaterThan(3_000_000)
  })

  test("takes no more from here than its limit, also in small pieces", async () => {
    await workspaces.create("a", 1_000_000)
    const files = workspaces.files("a")
    for (let n = 0; n < 4; n++) await files.write(`file-${n}`, bytes(Buffer.alloc(200_000, 1)))
    await expect(files.write("one-more", bytes(Buffer.alloc(200_000, 1)))).rejects.toEqual(code("limit"))
    expect((await files.list("", 10)).map(({ name }) => name)).not.toContain("one-more")
    await files.remove("file-0", false)
    await clock.advance(60_000)
    await files.write("one-more", bytes(Buffer.alloc(200_000, 1)))
    expect(readdirSync(folder.at("ws", "a", "staging"))).toEqual([])
    await workspaces.create("free", 0)
    expect(workspaces.get("free").limit).toBe("none")
  })

  test.each(["", "A", "a_b", "-a", "a-", "a/b", "..", "a".repeat(64), "a\n"])("cannot be called %j", (name) => {
    expect(workspaceCalls["workspace.create"].in.safeParse({ name }).success).toBe(false)
  })

  test("that was cut off while being made or deleted is gone after a restart, and so are drafts", async () => {
    await workspaces.create("ready")
    writeFileSync(folder.at("ws", "ready", "staging", "draft"), "half")
    mkdirSync(folder.at("ws", "ready", "staging", "rubbish", "deep"), { recursive: true })
    for (const [name, state] of [
      ["a", "making"],
      ["b", "deleting"],
    ] as const) {
      await workspaces.create(name)
      writeFileSync(join(workspaces.folderOf(name), "file"), "x")
      database.run("UPDATE workspaces SET state = ? WHERE name = ?", [state, name])
    }
    expect(() => workspaces.get("a")).toThrow(expect.objectContaining({ code: "not_found" }))
    await using again = await open()
    expect(readdirSync(folder.at("ws"))).toEqual(["ready"])
    expect(readdirSync(folder.at("ws", "ready", "staging"))).toEqual([])
    await again.create("a")
  })

  test("is whole or gone after each of 20 kills", async () => {
    const program = await bundleProgram(new URL("testing/maker.ts", import.meta.url), folder)
    for (let kill = 0; kill < 20; kill++) {
      await using maker = new Program(program, [folder.at("warren.db"), folder.at("ws")])
      const said: string[] = []
      for (let line = 0; line < 4 + ((kill * 3) % 11); line++) said.push(await maker.line())
      maker.kill()
      said.push(...(await maker.rest()))
      await using again = await open()
      const there = again.list("", 100).map(({ name }) => name)
      expect(readdirSync(folder.at("ws")).toSorted()).toEqual(there)
      const last = new Map(said.map((line) => line.split(" ").toReversed() as [string, string]))
      for (const [name, verb] of last) {
        // Its deletion may have begun, and then it has also ended.
        const mayBeGone = verb === "deleted" || (verb === "wrote" && Number(name.slice(1)) % 2 === 0)
        if (!mayBeGone) expect(there).toContain(name)
        if (verb === "deleted") expect(there).not.toContain(name)
        const isWritten = verb === "wrote" && there.includes(name)
        if (isWritten) expect(readFileSync(join(again.folderOf(name), "file"), "utf8")).toBe("all of it")
      }
      for (const one of there) expect(readdirSync(folder.at("ws", one, "staging"))).toEqual([])
      for (const one of there) await again.delete(one)
    }
  })

  test("that cannot be reached is said, and keeps no other from being used", async () => {
    await workspaces.create("lost")
    await workspaces.create("there")
    renameSync(folder.at("ws", "lost"), folder.at("elsewhere"))
    await using again = await open()
    expect(lines.join("")).toContain('"workspace":"lost"')
    await again.files("there").write("a", bytes("b"))
    await expect(again.files("lost").list("", 1)).rejects.toEqual(code("not_found"))
  })
})

async function* bytes(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array, void, void> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

describe("its files", () => {
  let files: WorkspaceFiles
  let top: string
  beforeEach(async () => {
    await workspaces.create("a")
    files = workspaces.files("a")
    top = workspaces.folderOf("a")
  })
  const write = (path: string, text: string, options?: WriteOptions) => files.write(path, bytes(text), options)
  async function read(path: string, range: { offset?: number; limit?: number } = {}): Promise<string> {
    await using file = await files.openRead(path, range)
    const chunks: Uint8Array[] = []
    for await (const chunk of file.bytes()) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  test("are written, read in parts, listed, moved and removed", async () => {
    const written = await write("src/deep/main.ts", "hello world")
    expect(written).toMatchObject({
      path: "src/deep/main.ts",
      name: "main.ts",
      kind: "file",
      sizeBytes: 11,
      mode: 0o644,
    })
    expect(await files.stat("src/deep/main.ts")).toEqual(written)
    expect([await read("src/deep/main.ts"), await read("src/deep/main.ts", { offset: 6, limit: 3 })]).toEqual([
      "hello world",
      "wor",
    ])
    expect(await read("src/deep/main.ts", { offset: 99 })).toBe("")
    await files.mkdir("src/other/more")
    await files.mkdir("src/other/more")
    expect((await files.list("src", 10)).map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      "folder deep",
      "folder other",
    ])
    expect((await files.stat("")).kind).toBe("folder")
    await files.move("src/deep/main.ts", "main.ts", false)
    await expect(files.move("src/other", "main.ts", false)).rejects.toEqual(code("conflict"))
    await expect(files.move("src", "src/other/more/src", false)).rejects.toEqual(code("invalid"))
    await expect(files.remove("src", false)).rejects.toEqual(code("conflict"))
    expect([await files.remove("src", true), await files.remove("src", true)]).toEqual([true, false])
    expect(await files.remove("main.ts", false)).toBe(true)
    expect(await files.list("", 10)).toEqual([])
    expect(readdirSync(folder.at("ws", "a", "staging"))).toEqual([])
  })

  test("give back any bytes, in whatever pieces they came", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 5_000 }), { maxLength: 5 }),
        fc.nat(9_000),
        fc.nat(9_000),
        async (chunks, offset, limit) => {
          await files.write("any", bytes(...chunks))
          await using file = await files.openRead("any", { offset, limit })
          const got: Uint8Array[] = []
          for await (const chunk of file.bytes()) got.push(chunk)
          expect(Buffer.concat(got).equals(Buffer.concat(chunks).subarray(offset, offset + limit))).toBe(true)
        },
      ),
      { numRuns: 40 },
    )
  })

  test("belong to whoever works inside, and so do new folders", async () => {
    if (process.getuid?.() !== 0) return
    await write("new/folder/file", "x", { mode: 0o755 })
    for (const path of ["new", "new/folder", "new/folder/file"])
      expect(statSync(join(top, path))).toMatchObject({ uid: 1000, gid: 1000 })
    expect(statSync(join(top, "new/folder/file")).mode & 0o7777).toBe(0o755)
    await write("setuid", "x", { mode: 0o6755 })
    expect(statSync(join(top, "setuid")).mode & 0o7777).toBe(0o755)
  })

  test("are replaced as a whole: who has the old one open goes on reading that", async () => {
    await write("file", "old")
    await using old = await files.openRead("file")
    await write("file", "new")
    const { value } = await old.bytes().next()
    expect(Buffer.from(value ?? []).toString()).toBe("old")
    expect(await read("file")).toBe("new")
  })

  test("are left as they were when writing fails or is cancelled half-way", async () => {
    await write("file", "old")
    async function* broken(): AsyncGenerator<Uint8Array, void, void> {
      yield Buffer.from("half")
      throw new Error("the line went dead")
    }
    await expect(files.write("file", broken())).rejects.toThrow("went dead")
    const cancel = new AbortController()
    async function* cancelled(): AsyncGenerator<Uint8Array, void, void> {
      yield Buffer.from("half")
      cancel.abort(new Error("never mind"))
      yield Buffer.from("more")
    }
    await expect(files.write("file", cancelled(), { signal: cancel.signal })).rejects.toThrow("never mind")
    expect(await read("file")).toBe("old")
    expect(readdirSync(folder.at("ws", "a", "staging"))).toEqual([])
  })

  test("are written only over what one knows, if one says so", async () => {
    const first = await write("file", "1")
    const second = await write("file", "2", { ifMatch: first.etag })
    await expect(write("file", "3", { ifMatch: first.etag })).rejects.toEqual(code("conflict"))
    writeFileSync(join(top, "file"), "by a sandbox")
    await expect(write("file", "3", { ifMatch: second.etag })).rejects.toEqual(code("conflict"))
    await expect(write("gone", "3", { ifMatch: second.etag })).rejects.toEqual(code("conflict"))
    await expect(write("file", "3", { ifNew: true })).rejects.toEqual(code("conflict"))
    expect(await read("file")).toBe("by a sandbox")
    await write("fresh", "3", { ifNew: true })
    expect([await read("fresh"), statSync(join(top, "fresh")).nlink]).toEqual(["3", 1])
    const { etag } = await files.stat("file")
    const both = await Promise.allSettled(["x", "y", "z"].map((text) => write("file", text, { ifMatch: etag })))
    expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
  })

  test("are listed in pages, and a folder with too many is refused", async () => {
    for (let n = 0; n < 12; n++) writeFileSync(join(top, `f${String(n).padStart(2, "0")}`), "")
    const calls = workspaceHandlers(workspaces)
    const first = await calls["workspace.files"]({ name: "a", path: "", limit: 10 }, context)
    const second = await calls["workspace.files"]({ name: "a", path: "", limit: 10, cursor: first.nextCursor }, context)
    expect([first.items.length, second.items.map(({ name }) => name)]).toEqual([10, ["f10", "f11"]])
    expect(workspaceCalls["workspace.files"].out.parse(first)).toEqual(first)
  })

  test("never lead out by a link, in any part of a path", async () => {
    mkdirSync(folder.at("outside"))
    writeFileSync(folder.at("outside", "file"), "secret")
    symlinkSync(folder.at("outside"), join(top, "door"))
    symlinkSync(folder.at("outside", "file"), join(top, "link"))
    symlinkSync("/proc/self/root", join(top, "root"))
    const tries = [
      () => read("door/file"),
      () => read("link"),
      () => read("root/etc/hostname"),
      () => files.stat("door/file"),
      () => files.list("door", 10),
      () => files.mkdir("door/new"),
      () => files.mkdir("door"),
      () => write("door/new", "x"),
      () => files.move("door/file", "stolen", false),
      () => files.remove("door/file", false),
    ]
    for (const attempt of tries) await expect(attempt()).rejects.toEqual(code("invalid"))
    expect(await files.stat("door")).toMatchObject({ kind: "link", target: folder.at("outside") })
    await write("link", "mine now")
    expect(statSync(join(top, "link")).isFile()).toBe(true)
    await files.move("door", "renamed", false)
    expect(await files.remove("renamed", true)).toBe(true)
    expect(readFileSync(folder.at("outside", "file"), "utf8")).toBe("secret")
  })

  test("that are no files are not waited for", async () => {
    execFileSync("mkfifo", [join(top, "pipe")])
    const server = createServer().listen(join(top, "socket"))
    try {
      await expect(read("pipe")).rejects.toEqual(code("invalid"))
      await expect(read("socket")).rejects.toEqual(code("invalid"))
      expect(await files.stat("pipe")).toMatchObject({ kind: "other" })
      mkdirSync(join(top, "folder"))
      await expect(read("folder")).rejects.toEqual(code("invalid"))
      await expect(write("folder", "x")).rejects.toEqual(code("invalid"))
      await write("pipe", "a file now")
      expect(await read("pipe")).toBe("a file now")
      await files.remove("socket", false)
    } finally {
      server.close()
    }
  })

  test("can be removed however deep they lie, and whatever their names are", async () => {
    // Deeper than any path can name.
    const script = 'for (0..600) { mkdir "aaaaaaaaaa" or die; chdir "aaaaaaaaaa" or die } open(F, ">file") or die'
    const dig = (): Buffer => execFileSync("perl", ["-e", `mkdir "deep"; chdir "deep"; ${script}`], { cwd: top })
    dig()
    execFileSync("bash", ["-c", String.raw`touch "deep/$(printf '\xff\xfe')"; ln -s /etc deep/etc; mkfifo deep/pipe`], {
      cwd: top,
    })
    linkSync(join(top, "deep/pipe"), join(top, "deep/pipe2"))
    expect(await files.remove("deep", true)).toBe(true)
    expect(readdirSync(top)).toEqual([])
    expect(readdirSync(folder.at("ws", "a", "staging"))).toEqual([])
    dig()
    expect((await workspaces.measure("a")).usedBytes).toBeGreaterThan(600 * 4_096)
    expect(await workspaces.delete("a")).toBe(true)
  })

  test("of another owner and without any rights can be removed by root", async () => {
    if (process.getuid?.() !== 0) return
    mkdirSync(join(top, "locked"))
    writeFileSync(join(top, "locked", "file"), "x")
    lchownSync(join(top, "locked", "file"), 4_000, 4_000)
    chmodSync(join(top, "locked"), 0)
    expect(await files.remove("locked", true)).toBe(true)
  })

  test.each(["../x", "a/../../x", "/etc/passwd", "a\0b", "a/".repeat(129) + "b", "x".repeat(256), ".."])(
    "have no path %j",
    async (path) => {
      for (const attempt of [
        () => read(path),
        () => write(path, "x"),
        () => files.remove(path, true),
        () => files.mkdir(path),
      ])
        await expect(attempt()).rejects.toEqual(code("invalid"))
    },
  )

  test("have paths that only ever lead down", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "..", ".", "", "b c"), { maxLength: 6 }), (names) => {
        const path = names.join("/")
        if (names.includes("..") || path.startsWith("/"))
          expect(() => placeOf(path)).toThrow(expect.objectContaining({ code: "invalid" }))
        else expect(placeOf(path)).toEqual(names.filter((name) => name !== "" && name !== "."))
      }),
    )
  })

  test("cannot be the workspace itself where that makes no sense", async () => {
    for (const attempt of [() => files.remove("", true), () => files.mkdir("."), () => write("", "x"), () => read("")])
      await expect(attempt()).rejects.toEqual(code("invalid"))
  })

  test("go in and out by the calls as bytes, and one that is left half-way leaves nothing", async () => {
    const calls = workspaceHandlers(workspaces)
    const asked = { name: "a", path: "in/file", ifNew: false }
    {
      await using upload = await calls["workspace.write"](asked, context)
      await upload.write(Buffer.from("hello "))
      await upload.write(Buffer.from("world"))
      upload.send({ op: "eof" })
      expect(await upload.next()).toMatchObject({ ev: "written", entry: { path: "in/file", sizeBytes: 11 } })
      expect(await upload.next()).toBeUndefined()
    }
    {
      await using left = await calls["workspace.write"](asked, context)
      await left.write(Buffer.from("half"))
    }
    await using refused = await calls["workspace.write"]({ ...asked, path: "../x" }, context)
    await expect(refused.next()).rejects.toEqual(code("invalid"))
    await using download = await calls["workspace.read"]({ name: "a", path: "in/file", offset: 6 }, context)
    const piece = await download.next()
    expect(piece && piece.bytes.toString()).toBe("world")
    expect(await download.next()).toBeUndefined()
    expect(readdirSync(folder.at("ws", "a", "staging"))).toEqual([])
  })

  test("are reached by the calls, with what HTTP can say", async () => {
    const calls = workspaceHandlers(workspaces)
    await calls["workspace.mkdir"]({ name: "a", path: "x/y" }, context)
    await calls["workspace.move"]({ name: "a", from: "x/y", to: "z", replace: false }, context)
    expect((await calls["workspace.stat"]({ name: "a", path: "z" }, context)).kind).toBe("folder")
    const asked = workspaceCalls["workspace.remove"].in.parse({ name: "a", path: "x", recursive: "true" })
    expect(await calls["workspace.remove"](asked, context)).toEqual({ isRemoved: true })
    expect((await calls["workspace.usage"]({ name: "a" }, context)).usedBytes).toBeGreaterThan(0)
    await expect(calls["workspace.stat"]({ name: "none", path: "z" }, context)).rejects.toEqual(code("not_found"))
  })
})
