import { ManualClock } from "@warren/base/clock.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { toolLimits } from "@warren/protocol/hub/tools.ts"
import { expect, test } from "vitest"
import { Family, familyMigrations } from "./family.ts"
import { imageTypeOf } from "./image-type.ts"

async function withFamily(work: (family: Family) => void): Promise<void> {
  await using folder = await TempFolder.make()
  using database = new Database(folder.at("db"), { migrations: familyMigrations })
  work(new Family(database, new ManualClock()))
}

test("who started whom is known, only so deep, and forgotten with either", () =>
  withFamily((family) => {
    for (let depth = 1; depth <= toolLimits.depthMax; depth++) family.add(`s${depth - 1}`, `s${depth}`)
    expect(() => family.add(`s${toolLimits.depthMax}`, "more")).toThrow("deep")
    expect(family.of("s1")).toMatchObject({ parent: "s0", depth: 1, isComplete: false })
    family.complete("s1")
    expect(family.children("s0")).toMatchObject([{ child: "s1", isComplete: true }])
    expect(family.parents()).toHaveLength(toolLimits.depthMax)
    family.forget("s1")
    expect(family.of("s1")).toBeUndefined()
    expect(family.of("s2")).toBeUndefined()
  }))

test("letters are read in order, after a number, and only so many are kept", () =>
  withFamily((family) => {
    for (let n = 1; n <= toolLimits.messagesKept + 1; n++) family.leave("to", "from", `letter ${n}`)
    family.leave("other", "from", "not yours")
    const first = family.letters("to", 0, 2)
    expect(first.map(({ text }) => text)).toEqual(["letter 2", "letter 3"])
    expect(family.letters("to", first[1]?.number ?? 0, 1)).toMatchObject([{ text: "letter 4", from: "from" }])
    expect(family.letters("to", 0, 10_000)).toHaveLength(toolLimits.messagesKept)
    family.forget("to")
    expect(family.letters("to", 0, 1)).toEqual([])
    expect(family.letters("other", 0, 10)).toHaveLength(1)
  }))

test("an image is one by its bytes, whatever it is called", () => {
  const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])
  expect(imageTypeOf(png)).toBe("image/png")
  expect(imageTypeOf(Buffer.from("RIFF1234WEBPrest"))).toBe("image/webp")
  for (const text of ["<svg onload=alert(1)>", "<html>", "", "RIFF1234WAVE"])
    expect(imageTypeOf(Buffer.from(text))).toBeUndefined()
})
