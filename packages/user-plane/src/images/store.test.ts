import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { onFailpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { digestBytes } from "./digest.ts"
import { Images } from "./images.ts"
import { writeTar } from "./tar/writer.ts"
import { file, folder, symlink } from "./testing/archives.ts"
import { dockerArchive } from "./testing/docker-archive.ts"

/** Layers keep owners, which only root can give. */
const isRoot = process.getuid?.() === 0
let temp: TempFolder
let images: Images
const open = (): Promise<Images> => Images.open({ root: temp.at("images"), log: silentLog })
beforeEach(async () => {
  temp = await TempFolder.make()
  images = await open()
})
afterEach(async () => {
  await images[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})

const layersOnDisk = (): string[] => readdirSync(temp.at("images/layers/sha256"))
const fault = (code: string) => expect.objectContaining({ constructor: Fault, code })
const layer = (text: string): Buffer => writeTar([file(`files/${text}`, text)])

async function load(name: string, ...layers: string[]): Promise<string> {
  const path = temp.at("saved.tar")
  writeFileSync(path, dockerArchive([{ name, layers: layers.map(layer) }]))
  const [id = ""] = await images.import(path)
  return id
}

describe.skipIf(!isRoot)("names", () => {
  test("host is always there, and nobody's to change", async () => {
    expect(images.list()).toEqual([{ id: "host", names: ["host"], madeAt: 0, bytes: 0, isBuiltIn: true }])
    expect(() => images.delete("host")).toThrow(fault("forbidden"))
    await load("a", "x")
    expect(() => images.tag("a", "host")).toThrow(fault("invalid"))
    expect((await images.use("host", "me")).grafts).toContainEqual({ from: "/usr", to: "/usr" })
  })

  test("tag, list, inspect, delete", async () => {
    const id = await load("a:1", "x", "y")
    images.tag("a:1", "example.org/b:2")
    expect(images.inspect("example.org/b:2")).toMatchObject({ id, names: ["docker.io/library/a:1", "example.org/b:2"] })
    expect(images.inspect(id).layers.length).toBe(3)
    images.delete("a:1")
    expect(() => images.inspect("a:1")).toThrow(fault("not_found"))
    expect(images.inspect("example.org/b:2").id).toBe(id)
    expect(await images.gc()).toMatchObject({ images: [], layers: [] })
  })

  test("a name that moves leaves its old image to be collected", async () => {
    const old = await load("a", "x")
    const id = await load("a", "y")
    expect(images.inspect("a").id).toBe(id)
    expect((await images.gc()).images).toEqual([old])
  })

  test.each(["", "A", "a b", "../x", "a:", "a@sha256:1", "-x/y", "a".repeat(600)])("%j is no name", (name) => {
    expect(() => images.inspect(name)).toThrow(fault("invalid"))
  })
})

describe.skipIf(!isRoot)("what is kept", () => {
  test("a layer that two images share is there once, and goes with the second", async () => {
    await load("a", "base", "x")
    await load("b", "base", "y")
    // base, x, y, and what Warren puts on top of each: the same.
    expect(layersOnDisk().length).toBe(4)
    images.delete("a")
    expect((await images.gc()).layers).toEqual([digestBytes(layer("x"))])
    images.delete("b")
    expect((await images.gc()).layers.length).toBe(3)
    expect(layersOnDisk()).toEqual([])
  })

  test("an image that somebody uses stays, also after the name is gone and the process, too", async () => {
    const id = await load("a", "x")
    images.tag("a", "b")
    const { layers } = await images.use("a", "sbx_1")
    expect(images.inspect("a").usedBy).toEqual(["sbx_1"])
    images.delete("a")
    expect(() => images.delete("b")).toThrow(fault("conflict"))
    await load("b", "y")
    await images[Symbol.asyncDispose]()
    images = await open()
    await images.gc()
    expect(layers.every((path) => existsSync(path))).toBe(true)
    images.release("sbx_1")
    expect((await images.gc()).images).toEqual([id])
    expect(layers.filter((path) => existsSync(path)).length).toBe(1)
  })

  test("whatever is done in whatever order, layers on disk are those that some named or used image needs", async () => {
    const letters = fc.constantFrom("p", "q", "r", "s")
    const step = fc.oneof(
      fc.record({
        do: fc.constant("load" as const),
        name: letters,
        layers: fc.uniqueArray(letters, { minLength: 1, maxLength: 3 }),
      }),
      fc.record({
        do: fc.constantFrom("delete" as const, "use" as const, "release" as const, "gc" as const, "open" as const),
        name: letters,
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        for (const one of steps) {
          try {
            if (one.do === "load") await load(one.name, ...one.layers)
            else if (one.do === "use") await images.use(one.name, `holder-${one.name}`)
            else if (one.do === "release") images.release(`holder-${one.name}`)
            else if (one.do === "delete") images.delete(one.name)
            else if (one.do === "gc") await images.gc()
            else {
              await images[Symbol.asyncDispose]()
              images = await open()
            }
          } catch (failure) {
            expect(["not_found", "conflict"]).toContain((failure as Fault).code)
          }
        }
        await images.gc()
        const needed = new Set(
          images
            .list()
            .flatMap(({ id }) => (id === "host" ? [] : images.inspect(id).layers.map(({ digest }) => digest.slice(7)))),
        )
        expect(new Set(layersOnDisk())).toEqual(needed)
        for (const { names, id } of images.list())
          expect(names.length + (id === "host" ? 1 : images.inspect(id).usedBy.length)).toBeGreaterThan(0)
      }),
      { numRuns: 8 },
    )
  })

  test("collecting while images come and go takes nothing that is needed", async () => {
    for (let round = 0; round < 15; round++) {
      await Promise.all([load("a", "base", "x"), images.gc(), Promise.resolve().then(() => images.gc()), images.gc()])
      const { layers } = await images.use("a", "me")
      expect(layers.filter((path) => !existsSync(path))).toEqual([])
      images.release("me")
      images.delete("a")
    }
    await images.gc()
    expect([layersOnDisk(), readdirSync(temp.at("images/drafts"))]).toEqual([[], []])
  })

  test("half-made and half-removed layers are gone after the next open", async () => {
    await load("a", "x")
    const before = layersOnDisk()
    await images[Symbol.asyncDispose]()
    mkdirSync(temp.at("images/drafts/d-killed/root/etc"), { recursive: true })
    mkdirSync(temp.at("images/layers/sha256", "0".repeat(64), "etc"), { recursive: true })
    images = await open()
    expect(readdirSync(temp.at("images/drafts"))).toEqual([])
    expect(layersOnDisk()).toEqual(before)
  })

  test.each(["layer/settled", "layer/placed", "image/complete", "image/named"])(
    "one that could not be written down at %s leaves nothing and is not in its own way",
    async (name) => {
      let left = 1
      using _ = onFailpoint((passed) => {
        if (passed === name && left-- === 1) throw new Fault("limit", "the disk is full")
      })
      await expect(load("a", "x")).rejects.toThrow(fault("limit"))
      expect(readdirSync(temp.at("images/drafts"))).toEqual([])
      if (name.startsWith("layer/")) expect(layersOnDisk()).toEqual([])
      await load("a", "x")
      expect(images.inspect("a").layers.length).toBe(layersOnDisk().length)
    },
  )

  test("an image whose layer was taken away from outside is no longer offered", async () => {
    await load("a", "x")
    await load("b", "y")
    await images[Symbol.asyncDispose]()
    renameSync(join(temp.at("images/layers/sha256"), digestBytes(layer("x")).slice(7)), temp.at("away"))
    images = await open()
    expect(() => images.inspect("a")).toThrow(fault("not_found"))
    images.inspect("b")
    await load("a", "x")
  })

  test("only one store at a time", async () => {
    await expect(open()).rejects.toEqual(fault("conflict"))
  })
})

describe.skipIf(!isRoot)("importing", () => {
  test("what is not there is not found", async () => {
    await expect(images.import(temp.at("nothing"))).rejects.toEqual(fault("not_found"))
  })

  test("a refused layer leaves nothing", async () => {
    writeFileSync(temp.at("bad.tar"), writeTar([folder("d/"), symlink("l", "/etc"), file("l/x", "x")]))
    await expect(images.import(temp.at("bad.tar"), { name: "bad" })).rejects.toThrow('"l/x"')
    expect([layersOnDisk(), readdirSync(temp.at("images/drafts"))]).toEqual([[], []])
  })

  test("a docker archive whose layers link to each other works; one that links out does not", async () => {
    const text = layer("x")
    const config = JSON.stringify({ rootfs: { type: "layers", diff_ids: [digestBytes(text)] } })
    const saved = (target: string): Buffer =>
      writeTar([
        file("c.json", config),
        folder("real/"),
        { ...file("real/layer.tar"), content: text },
        folder("linked/"),
        symlink("linked/layer.tar", target),
        file(
          "manifest.json",
          JSON.stringify([{ Config: "c.json", RepoTags: ["linked:1"], Layers: ["linked/layer.tar"] }]),
        ),
      ])
    for (const target of ["/etc/passwd", "../../../../etc/passwd", "layer.tar", "../real"]) {
      writeFileSync(temp.at("out.tar"), saved(target))
      await expect(images.import(temp.at("out.tar"))).rejects.toThrow('"linked/layer.tar"')
    }
    writeFileSync(temp.at("in.tar"), saved("../real/layer.tar"))
    await images.import(temp.at("in.tar"))
    expect(images.inspect("linked:1").layers.length).toBe(2)
  })

  test.each([
    ["Config", [{ Config: "../../../etc/passwd", RepoTags: ["x"], Layers: [] }]],
    ["Config, absolute", [{ Config: "/etc/passwd", RepoTags: ["x"], Layers: [] }]],
    ["nothing", []],
    ["no list", {}],
  ])("a docker archive that asks for a file of the host is refused: %s", async (_, manifest) => {
    writeFileSync(temp.at("x.tar"), writeTar([file("manifest.json", JSON.stringify(manifest))]))
    await expect(images.import(temp.at("x.tar"))).rejects.toEqual(fault("invalid"))
  })
})
