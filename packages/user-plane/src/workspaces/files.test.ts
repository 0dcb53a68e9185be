import { readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { workspaceCalls } from "@warren/protocol/user-plane/workspaces.ts"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { WorkspaceFiles, WriteOptions } from "./files.ts"
import { workspaceHandlers } from "./handlers.ts"
import { bytes, code, context, readText, Shelf } from "./testing/shelf.ts"
import type { Workspaces } from "./workspaces.ts"

let shelf: Shelf
let folder: TempFolder
let workspaces: Workspaces

beforeEach(async () => {
  shelf = await Shelf.make()
  ;({ folder, workspaces } = shelf)
})
afterEach(() => shelf[Symbol.asyncDispose]())

describe("its files", () => {
  let files: WorkspaceFiles
  let top: string
  beforeEach(async () => {
    await workspaces.create("a")
    files = workspaces.files("a")
    top = workspaces.folderOf("a")
  })
  const write = (path: string, text: string, options?: WriteOptions) => files.write(path, bytes(text), options)
  const read = (path: string, range?: { offset?: number; limit?: number }) => readText(files, path, range)

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
