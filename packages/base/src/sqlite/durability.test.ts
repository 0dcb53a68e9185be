import Sqlite from "libsql"
import { afterAll, beforeAll, expect, test } from "vitest"
import { bundleProgram, Program } from "../testing/program.ts"
import { TempFolder } from "../testing/temp-folder.ts"
import { Database } from "./database.ts"

const kills = 200
const atOnce = 2

interface Kept {
  readonly n: number
  readonly halves: number
}

let folder: TempFolder
let program: string
beforeAll(async () => {
  folder = await TempFolder.make()
  program = await bundleProgram(new URL("../../fixtures/committer.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

/** Kills a process that commits after it has reported some commits; the newest it reported. */
async function killOne(path: string, reportsWanted: number): Promise<number> {
  await using committer = new Program(program, [path])
  let last = 0
  for (let i = 0; i < reportsWanted; i++) last = Number(await committer.line())
  committer.kill()
  const more = await committer.rest()
  return Number(more.at(-1) ?? last)
}

/** Checks that the database holds 1 to `reported`, each transaction whole, and at most one that was not yet reported. */
function check(path: string, reported: number): number {
  const reader = new Sqlite(path)
  try {
    expect(reader.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
    const kept = reader.prepare("SELECT n, count(*) AS halves FROM entries GROUP BY n ORDER BY n").all() as Kept[]
    expect(kept.length).toBeGreaterThanOrEqual(reported)
    expect(kept.length).toBeLessThanOrEqual(reported + 1)
    expect(kept.every(({ n, halves }, index) => n === index + 1 && halves === 2)).toBe(true)
    return kept.length
  } finally {
    reader.close()
  }
}

test(`what was reported as committed is there after each of ${kills} kills with SIGKILL`, async () => {
  const chain = async (name: string): Promise<void> => {
    const path = folder.at(`${name}.db`)
    let kept = 0
    for (let i = 0; i < kills / atOnce; i++) {
      const reported = await killOne(path, 1 + Math.floor(Math.random() * 12))
      expect(reported).toBeGreaterThan(kept)
      kept = check(path, reported)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, index) => chain(`chain-${index}`)))
}, 120_000)

test("a commit is synced to the disk before it returns, not only handed to the kernel", () => {
  using database = new Database(folder.at("settings.db"))
  expect(database.get("PRAGMA synchronous", [], (row) => row["synchronous"])).toBe(2)
  expect(database.get("PRAGMA journal_mode", [], (row) => row["journal_mode"])).toBe("wal")
})
