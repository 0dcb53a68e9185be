import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { ManualClock } from "@warren/base/clock.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import type { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { workspaceCalls } from "@warren/protocol/user-plane/workspaces.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { workspaceHandlers } from "./handlers.ts"
import { bytes, code, context, Shelf } from "./testing/shelf.ts"
import type { Workspaces } from "./workspaces.ts"

let shelf: Shelf
let folder: TempFolder
let clock: ManualClock
let workspaces: Workspaces

beforeEach(async () => {
  shelf = await Shelf.make()
  ;({ folder, clock, workspaces } = shelf)
})
afterEach(() => shelf[Symbol.asyncDispose]())

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
      shelf.database.run("UPDATE workspaces SET state = ? WHERE name = ?", [state, name])
    }
    expect(() => workspaces.get("a")).toThrow(expect.objectContaining({ code: "not_found" }))
    await using again = await shelf.open()
    expect(readdirSync(folder.at("ws"))).toEqual(["ready"])
    expect(readdirSync(folder.at("ws", "ready", "staging"))).toEqual([])
    await again.create("a")
  })

  test("is deleted within itself: whoever dies half-way leaves nothing beside it that nobody knows", async () => {
    await workspaces.create("deep")
    for (let n = 0; n < 50; n++) mkdirSync(join(workspaces.folderOf("deep"), `a${n}`, "b", "c"), { recursive: true })
    const seen = new Set<string>()
    const state = { isOver: false }
    const deleted = workspaces.delete("deep").finally(() => (state.isOver = true))
    while (!state.isOver) {
      for (const name of readdirSync(folder.at("ws"))) seen.add(name)
      await new Promise(setImmediate)
    }
    expect(await deleted).toBe(true)
    expect([[...seen], readdirSync(folder.at("ws"))]).toEqual([["deep"], []])
  })

  test("is whole or gone after each of 20 kills", async () => {
    const program = await bundleProgram(new URL("testing/maker.ts", import.meta.url), folder)
    for (let kill = 0; kill < 20; kill++) {
      await using maker = new Program(program, [folder.at("warren.db"), folder.at("ws")])
      const said: string[] = []
      for (let line = 0; line < 4 + ((kill * 3) % 11); line++) said.push(await maker.line())
      maker.kill()
      said.push(...(await maker.rest()))
      await using again = await shelf.open()
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
    await using again = await shelf.open()
    expect(shelf.lines.join("")).toContain('"workspace":"lost"')
    await again.files("there").write("a", bytes("b"))
    await expect(again.files("lost").list("", 1)).rejects.toEqual(code("not_found"))
  })
})
