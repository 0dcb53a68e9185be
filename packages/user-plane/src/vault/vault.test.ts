import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { appendFile, chmod, chown, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { secretCalls } from "@warren/protocol/user-plane/secrets.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { secretHandlers, Vault, vaultMigrations } from "./vault.ts"

const value = `sk-live-${randomBytes(24).toString("hex")}`
const context = { signal: new AbortController().signal, caller: { name: "anna" } }

let folder: TempFolder
let database: Database
let lines: string[]
let clock: ManualClock
let vault: Vault

const keyFile = (): string => folder.at("vault", "key")
const open = (): Promise<Vault> =>
  Vault.open({ database, clock, log: createLog((line) => lines.push(line)), keyFile: keyFile() })

beforeEach(async () => {
  folder = await TempFolder.make()
  database = new Database(folder.at("warren.db"), { migrations: vaultMigrations })
  lines = []
  clock = new ManualClock()
  vault = await open()
})
afterEach(async () => {
  database.close()
  await folder[Symbol.asyncDispose]()
})

/** Everything on disk but the key. */
async function everything(): Promise<Buffer> {
  const names = await readdir(folder.path, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Buffer.concat(await Promise.all(files.map((file) => readFile(file))))
}

describe("a vault", () => {
  test("gives back inside what was set, also after a restart, and says by name that it did", async () => {
    vault.set("TOKEN", value)
    expect(vault.reveal("TOKEN", "broker")).toBe(value)
    expect((await open()).reveal("TOKEN", "broker")).toBe(value)
    const uses = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "secrets.reveal")
    expect(uses).toMatchObject([
      { secret: "TOKEN", use: "broker" },
      { secret: "TOKEN", use: "broker" },
    ])
  })

  test("never leaves the value in a file, a write-ahead log or a log line, whatever its form", async () => {
    vault.set("TOKEN", value)
    vault.reveal("TOKEN", "broker")
    await vault.rotate()
    vault.set("TOKEN", `${value}2`)
    vault.delete("TOKEN")
    const bytes = await everything()
    expect(bytes.includes("TOKEN")).toBe(true)
    const forms = [value, Buffer.from(value).toString("base64").slice(0, -4), Buffer.from(value).toString("hex")]
    for (const form of [...forms, encodeURIComponent(value)]) {
      expect(bytes.includes(form)).toBe(false)
      expect(lines.join("")).not.toContain(form)
    }
  })

  test("keeps its key where only its owner can read it", async () => {
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600)
    expect((await stat(folder.at("vault"))).mode & 0o777).toBe(0o700)
  })

  test("seals the same value differently each time", () => {
    vault.set("A", value)
    vault.set("B", value)
    const [a, b] = database.all("SELECT sealed FROM secrets ORDER BY name", [], (row) => row["sealed"] as Buffer)
    expect(a?.equals(b ?? Buffer.of())).toBe(false)
  })

  test("notices a swapped row", () => {
    vault.set("A", "one")
    vault.set("B", "two")
    database.run("UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'B') WHERE name = 'A'")
    expect(() => vault.reveal("A", "test")).toThrow(expect.objectContaining({ code: "unavailable" }))
    expect(vault.reveal("B", "test")).toBe("two")
  })

  test("notices every changed byte, and every cut", () => {
    vault.set("A", "one")
    const sealed = database.get("SELECT sealed FROM secrets", [], (row) => row["sealed"] as Buffer) ?? Buffer.of()
    const broken = (bytes: Uint8Array): void => {
      database.run("UPDATE secrets SET sealed = ?", [bytes])
      expect(() => vault.reveal("A", "test")).toThrow(expect.objectContaining({ code: "unavailable" }))
    }
    for (let at = 0; at < sealed.length; at++) broken(sealed.map((byte, index) => (index === at ? byte ^ 1 : byte)))
    for (let length = 0; length < sealed.length; length++) broken(sealed.subarray(0, length))
    database.run("UPDATE secrets SET sealed = ?, key_id = 'other'", [sealed])
    expect(() => vault.reveal("A", "test")).toThrow(/key that is not there/)
  })

  test("changes its key, and the old one opens nothing any more", async () => {
    vault.set("A", value)
    const before = await readFile(keyFile(), "utf8")
    await vault.rotate()
    expect(vault.reveal("A", "test")).toBe(value)
    expect((await open()).reveal("A", "test")).toBe(value)
    await writeFile(keyFile(), before)
    const old = await open()
    expect(() => old.reveal("A", "test")).toThrow(/key that is not there/)
  })

  test("changes its key in spite of a row that was tampered with", async () => {
    vault.set("A", "one")
    vault.set("B", "two")
    database.run("UPDATE secrets SET sealed = x'00' WHERE name = 'A'")
    await vault.rotate()
    const again = await open()
    expect(again.reveal("B", "test")).toBe("two")
    expect(() => again.reveal("A", "test")).toThrow(expect.objectContaining({ code: "unavailable" }))
    again.set("A", "new")
    expect(again.reveal("A", "test")).toBe("new")
  })

  test("loses nothing when it is killed while it changes its key", async () => {
    for (let n = 0; n < 20; n++) vault.set(`S${n}`, `${value}${n}`)
    const program = await bundleProgram(new URL("testing/rotator.ts", import.meta.url), folder)
    for (let kill = 0; kill < 25; kill++) {
      await using rotator = new Program(program, [folder.at("warren.db"), keyFile()])
      for (let lines = 0; lines <= kill % 4; lines++) await rotator.line()
      // Somewhere within the next change.
      for (let turns = 0; turns < kill * 40; turns++) await new Promise(setImmediate)
      rotator.kill()
      await rotator.ended
      const again = await open()
      for (let n = 0; n < 20; n++) expect(again.reveal(`S${n}`, "test")).toBe(`${value}${n}`)
    }
  })

  const isRoot = process.getuid?.() === 0
  const mustBeOurs = /must be a small file that only its owner can read/
  test.each<[string, () => Promise<unknown>, RegExp]>([
    ["that others can read", () => chmod(keyFile(), 0o644), mustBeOurs],
    ["that is a link", async () => (await rm(keyFile()), symlink("/etc/hostname", keyFile())), /cannot be opened/],
    ["that is a pipe", async () => (await rm(keyFile()), execFileSync("mkfifo", ["-m", "600", keyFile()])), mustBeOurs],
    ["that is larger than one of ours", () => appendFile(keyFile(), " ".repeat(64 * 1024)), mustBeOurs],
    ["that is nonsense", () => writeFile(keyFile(), "{"), /makes no sense/],
    ["that lacks its current key", () => writeFile(keyFile(), '{"current":"a","keys":{}}'), /not hold its current key/],
    ["that is missing while there are secrets", () => rm(keyFile()), /is missing, and there are secrets/],
    // Who is not root cannot give a file away.
    ...(isRoot
      ? [
          ["that is somebody else's", () => chown(keyFile(), 1234, 1234), mustBeOurs] satisfies [
            string,
            () => Promise<unknown>,
            RegExp,
          ],
        ]
      : []),
  ])("refuses a key file %s", async (_, spoil, message) => {
    vault.set("A", value)
    await spoil()
    await expect(open()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(message) as string,
    })
  })

  test("is opened without a change of keys, when none was cut off", async () => {
    const before = await stat(keyFile())
    await open()
    expect((await stat(keyFile())).ino).toBe(before.ino)
    expect(lines.join("")).not.toContain("secrets.rotate")
  })
})

describe("the calls", () => {
  const ask = () => secretHandlers(vault)

  test("tell names and times, never values", async () => {
    const set = await ask()["secrets.set"]({ name: "A", value }, context)
    await clock.advance(5)
    vault.reveal("A", "test")
    const listed = await ask()["secrets.list"]({ limit: 10 }, context)
    expect(listed.items).toEqual([{ ...set, usedAt: new Date(clock.now()).toISOString() }])
    expect(secretCalls["secrets.list"].out.parse(listed)).toEqual(listed)
    expect(JSON.stringify([set, listed])).not.toContain(value)
  })

  test("page by name", async () => {
    for (const name of ["C", "A", "B"]) vault.set(name, value)
    const first = await ask()["secrets.list"]({ limit: 2 }, context)
    expect([first.items.map(({ name }) => name), first.nextCursor]).toEqual([["A", "B"], "B"])
    const second = await ask()["secrets.list"]({ limit: 2, cursor: "B" }, context)
    expect(second.items.map(({ name }) => name)).toEqual(["C"])
    expect(second.nextCursor).toBeUndefined()
  })

  test("delete once", async () => {
    vault.set("A", value)
    expect(await ask()["secrets.delete"]({ name: "A" }, context)).toEqual({ isDeleted: true })
    expect(await ask()["secrets.delete"]({ name: "A" }, context)).toEqual({ isDeleted: false })
    expect(() => vault.reveal("A", "test")).toThrow(expect.objectContaining({ code: "not_found" }))
  })

  test("hold to the limit", () => {
    database.transaction(() => {
      for (let n = 0; n < 1_000; n++) database.run("INSERT INTO secrets VALUES (?, x'00', 'k', 0, 0, NULL)", [`N${n}`])
    })
    expect(() => vault.set("ONE_MORE", value)).toThrow(expect.objectContaining({ code: "limit" }))
    vault.set("N5", value)
  })

  test.each(["", "1A", "A B", "A=B", "../x", "A\nB", "x".repeat(129)])("refuse the name %j", (name) => {
    expect(secretCalls["secrets.set"].in.safeParse({ name, value }).success).toBe(false)
  })
})
