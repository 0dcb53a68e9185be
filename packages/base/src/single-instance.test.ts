import { writeFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { holdLock } from "./single-instance.ts"
import { bundleProgram, Program } from "./testing/program.ts"
import { TempFolder } from "./testing/temp-folder.ts"

let folder: TempFolder
let program: string
beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../fixtures/lock-taker.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

describe("a lock", () => {
  test("is refused to a second process, and free again when the first is killed", async () => {
    const path = folder.at("killed")
    for (let round = 0; round < 3; round++) {
      await using first = new Program(program, [path])
      expect(await first.line()).toBe("holding")
      await using second = new Program(program, [path])
      expect(await second.line()).toBe("conflict: the taker is already running")
      expect(() => holdLock(path, "this test")).toThrow(
        expect.objectContaining({ code: "conflict", subject: `lock:${path}` }),
      )
      first.kill()
      await first.ended
    }
    holdLock(path, "this test")[Symbol.dispose]()
  })

  test("is refused within one process too, and free again once let go", () => {
    const path = folder.at("same")
    {
      using _held = holdLock(path, "one")
      expect(() => holdLock(path, "two")).toThrow(/two is already running/)
    }
    holdLock(path, "three")[Symbol.dispose]()
  })

  test("that cannot be taken for another reason does not claim that somebody holds it", async () => {
    expect(() => holdLock(folder.at("missing", "lock"), "x")).toThrow(expect.objectContaining({ code: "unavailable" }))
    await writeFile(folder.at("damaged"), "not a lock file".repeat(1_000))
    expect(() => holdLock(folder.at("damaged"), "x")).toThrow(expect.objectContaining({ code: "unavailable" }))
  })
})
