import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { never, text } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject, programs } from "@warren/drivers/oci/testing/subject.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Images } from "./images.ts"
import { keeperFor } from "./keeper/open.ts"
import { writeTar } from "./tar/writer.ts"
import { busyboxTree } from "./testing/archives.ts"
import { imagesRoot, keeperSource } from "./testing/keeper.ts"

const subject = ociSubject()
let temp: TempFolder
let program: string
let keeper: string

beforeAll(async () => {
  temp = await TempFolder.make()
  program = await bundleProgram(new URL("testing/builder.ts", import.meta.url), temp)
  keeper = await bundleProgram(keeperSource, temp)
  writeFileSync(temp.at("base.tar"), writeTar(busyboxTree()))
})
afterAll(() => temp[Symbol.asyncDispose]())

/** Runs until it has said something so many times, and a little on; says which sandboxes somebody needs. */
async function killedAfter(line: string, times: number, thenMs: number): Promise<SandboxId[]> {
  await using builder = new Program(program, [subject.root, JSON.stringify(programs), temp.at("base.tar"), keeper])
  const kept: SandboxId[] = []
  for (let left = times; left > 0;) {
    const said = await builder.line()
    if (said.startsWith("kept ")) kept.push(said.slice(5) as SandboxId)
    if (said === line) left--
  }
  // Not a wait for something: any moment will do, and they should differ.
  await new Promise((resolve) => setTimeout(resolve, thenMs))
  builder.kill()
  await builder.ended
  return kept
}

const moments = ["importing", "building", "step", "output", "using", "committing", "committed", "collecting"]

describe("a process that makes images and is killed", () => {
  test("leaves exactly what is used, once the next one has looked", { timeout: 300_000 }, async () => {
    for (const [index, moment] of [...moments, ...moments].entries()) {
      const kept = await killedAfter(moment, 1 + (index % 3), (index * 7) % 40)
      await using driver = await subject.open()
      const root = imagesRoot(driver, subject.root)
      await using images = await Images.open({ root, log: silentLog, keeper: keeperFor(driver, keeper) })
      for await (const _ of driver.adopt(never));
      await images.sweep(driver)
      images.releaseOthers(kept)
      await images.gc({ stepsMs: 0, blobsMs: 0 })

      const sandboxes = (): string[] =>
        readdirSync(join(subject.root, "volume")).filter((name) => name.startsWith("sbx_"))
      // One that was about to be kept is the business of whoever wrote its id down.
      for (const id of sandboxes()) if (!kept.includes(id as SandboxId)) await driver.destroy(id as SandboxId)
      expect(sandboxes().toSorted()).toEqual(kept.toSorted())
      expect(images.store.catalog.workers()).toEqual([])
      expect(readdirSync(join(root, "drafts"))).toEqual([])
      const all = images.list().flatMap(({ id }) => (id === "host" ? [] : [images.inspect(id)]))
      expect(all.filter(({ names, usedBy }) => names.length + usedBy.length === 0)).toEqual([])
      const needed = new Set(all.flatMap(({ layers }) => layers.map(({ digest }) => digest.slice(7))))
      expect(new Set(readdirSync(join(root, "layers/sha256")))).toEqual(needed)
      for (const id of kept) {
        expect(await text(await driver.start(id, never), "cat /workspace/file; ls -d /new*")).toMatch(
          /^precious\n\/new/,
        )
        await driver.destroy(id)
        images.release(id)
      }
      for (const { names } of all) for (const name of names) images.delete(name)
      await images.gc({ stepsMs: 0 })
      expect(readdirSync(join(root, "layers/sha256"))).toEqual([])
    }
  })
})
