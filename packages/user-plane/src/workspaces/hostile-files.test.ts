import { execFileSync } from "node:child_process"
import {
  chmodSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import type { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { WorkspaceFiles } from "./files.ts"
import { placeOf } from "./place.ts"
import { bytes, code, readText, Shelf } from "./testing/shelf.ts"
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
  const write = (path: string, text: string) => files.write(path, bytes(text))
  const read = (path: string) => readText(files, path)

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
})
