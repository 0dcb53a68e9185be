import { mkdir, symlink, writeFile } from "node:fs/promises"
import { deflateSync, gzipSync } from "node:zlib"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { expect, test } from "vitest"
import { Canary, filesWith, memoryWith } from "./canary.ts"

const encoders: Record<string, (text: string) => Buffer | string> = {
  plain: (text) => text,
  json: (text) => JSON.stringify({ text }),
  "json in json": (text) => JSON.stringify({ text: JSON.stringify(text) }),
  url: (text) => encodeURIComponent(text),
  hex: (text) => Buffer.from(text).toString("hex"),
  HEX: (text) => Buffer.from(text).toString("hex").toUpperCase(),
  base64: (text) => Buffer.from(text).toString("base64"),
  base64url: (text) => Buffer.from(text).toString("base64url"),
  utf16: (text) => Buffer.from(text, "utf16le"),
  reversed: (text) => Array.from(text).toReversed().join(""),
  gzip: (text) => gzipSync(text),
  zlib: (text) => deflateSync(text),
  "a cut gzip": (text) => gzipSync(text + "x".repeat(100_000)).subarray(0, -20),
}

test.each(Object.keys(encoders))("a canary is found in the form: %s, whatever is around it", (form) => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.constantFrom("", 'a"\\/é'), (before, after, odd) => {
      const canary = new Canary(`cny0123456789abcdef${odd}fedcba9876543210`)
      const inside = encoders[form]?.(before + canary.text + after) ?? ""
      const bytes = Buffer.concat([Buffer.from("head"), Buffer.from(inside), Buffer.from("tail")])
      // A text that is turned around is not found behind characters that take two units.
      if (form !== "reversed" || odd === "") expect(canary.in(bytes)).toBeDefined()
      expect(new Canary().in(bytes)).toBeUndefined()
    }),
  )
})

test("it is found in files, names and over the edge of a piece, and links are not followed", async () => {
  await using folder = await TempFolder.make()
  const canaries = { one: new Canary(), other: new Canary() }
  await mkdir(folder.at("deep", canaries.one.text), { recursive: true })
  const edge = 8 * 1024 * 1024 - 5
  await writeFile(folder.at("deep", "large"), Buffer.concat([Buffer.alloc(edge), Buffer.from(canaries.one.text)]))
  await writeFile(folder.at("clean"), "nothing")
  await symlink("/proc/self/environ", folder.at("link"))
  const found = filesWith(canaries, folder.path)
  expect(found.map((line) => line.replace(folder.path, "").replaceAll(canaries.one.text, "NAME"))).toEqual([
    "/deep/NAME: one, as it is",
    "/deep/large: one, as it is",
  ])
})

test("it is found in a process that has it in mind", () => {
  const canary = new Canary()
  expect(memoryWith({ canary, other: new Canary("nowhere to be seen".toUpperCase()) }, process.pid)).toContain("canary")
})
