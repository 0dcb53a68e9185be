import { gzipSync } from "node:zlib"
import { resolve } from "node:path"
import { rolldown } from "rolldown"
import { expect, test } from "vitest"

const gzippedBytesMax = 15_000

test("what ships to a browser is small, and needs nothing of Node's", async () => {
  const build = await rolldown({ input: resolve(import.meta.dirname, "warren.ts"), platform: "browser" })
  const { output } = await build.generate({ format: "esm", minify: true })
  await build.close()
  expect(output).toHaveLength(1)
  const [{ code, imports }] = output
  expect(imports).toEqual([])
  expect(code).not.toMatch(/["'`]node:/)
  expect(gzipSync(code).length).toBeLessThan(gzippedBytesMax)
})
