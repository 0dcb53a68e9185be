import { mkdir, readFile, stat, writeFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { writeFileAtomic } from "./atomic-file.ts"
import { bundleProgram, Program } from "./testing/program.ts"
import { TempFolder } from "./testing/temp-folder.ts"

const kills = 30
const bytes = 300_000

let folder: TempFolder
beforeAll(async () => void (folder = await TempFolder.make()))
afterAll(() => folder[Symbol.asyncDispose]())

describe("writeFileAtomic", () => {
  test("makes a file for its owner only, and replaces it whole", async () => {
    await using own = await TempFolder.make()
    await writeFileAtomic(own.at("a"), "long long text")
    await writeFileAtomic(own.at("a"), Buffer.from([0, 255]))
    expect(await readFile(own.at("a"))).toEqual(Buffer.from([0, 255]))
    expect((await stat(own.at("a"))).mode & 0o777).toBe(0o600)
    await writeFileAtomic(own.at("a"), "x", { mode: 0o640 })
    expect((await stat(own.at("a"))).mode & 0o777).toBe(0o640)
    expect(await own.names()).toEqual(["a"])
  })

  test("leaves the old bytes and no draft when it fails", async () => {
    await using own = await TempFolder.make()
    await mkdir(own.at("taken", "inside"), { recursive: true })
    await writeFile(own.at("kept"), "old")
    await expect(writeFileAtomic(own.at("taken"), "x")).rejects.toThrow()
    await expect(writeFileAtomic(own.at("missing", "a"), "x")).rejects.toThrow(/ENOENT/)
    const wrong = 5 as unknown as string
    await expect(writeFileAtomic(own.at("kept"), wrong)).rejects.toThrow()
    expect(await readFile(own.at("kept"), "utf8")).toBe("old")
    expect(await own.names()).toEqual(["kept", "taken"])
  })

  test("several at once leave one of their contents", async () => {
    await using own = await TempFolder.make()
    await Promise.all(Array.from({ length: 10 }, (_, n) => writeFileAtomic(own.at("a"), Buffer.alloc(10_000, n))))
    const content = await readFile(own.at("a"))
    expect(content.length).toBe(10_000)
    expect(new Set(content).size).toBe(1)
    expect(await own.names()).toEqual(["a"])
  })

  test("whoever reads while it is replaced sees one whole content", async () => {
    await using own = await TempFolder.make()
    await writeFileAtomic(own.at("a"), Buffer.alloc(bytes, 0))
    let isDone = false
    const replacing = (async () => {
      for (let n = 1; n <= 40; n++) await writeFileAtomic(own.at("a"), Buffer.alloc(bytes, n))
    })().finally(() => (isDone = true))
    let reads = 0
    while (!isDone) {
      const content = await readFile(own.at("a"))
      expect([content.length, content.every((byte) => byte === content[0])]).toEqual([bytes, true])
      reads++
    }
    await replacing
    expect(reads).toBeGreaterThan(0)
  })

  test(`killed ${kills} times at any moment, the file is one whole content, the reported one or the next`, async () => {
    const program = await bundleProgram(new URL("../fixtures/replacer.ts", import.meta.url), folder)
    const path = folder.at("replaced")
    let next = 1
    for (let i = 0; i < kills; i++) {
      await using replacer = new Program(program, [path, String(bytes), String(next)])
      for (let reports = Math.floor(Math.random() * 5); reports >= 0; reports--)
        next = Number(await replacer.line()) + 1
      replacer.kill()
      next = Number((await replacer.rest()).at(-1) ?? next - 1) + 1
      const content = await readFile(path)
      expect(content.length).toBe(bytes)
      expect(new Set(content).size).toBe(1)
      expect([(next - 1) % 256, next % 256]).toContain(content[0])
    }
  })
})
