import { execFileSync } from "node:child_process"
import { readdirSync, statfsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { canLendLayers, type Driver, type Layering } from "@warren/drivers/driver.ts"
import { never, text } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Images } from "./images.ts"
import { writeTar } from "./tar/writer.ts"
import { busyboxTree, file, folder } from "./testing/archives.ts"

const subject = ociSubject()
let driver: Driver & Layering
let temp: TempFolder
/** On the volume of the sandboxes, and somewhere else. */
let near: Images
let far: Images

beforeAll(async () => {
  const opened = await subject.open()
  if (!canLendLayers(opened)) throw new Error("the driver lends nothing")
  driver = opened
  temp = await TempFolder.make()
  near = await Images.open({ root: driver.imagesFolder ?? "", log: silentLog })
  far = await Images.open({ root: temp.at("images"), log: silentLog })
  writeFileSync(temp.at("base.tar"), writeTar(busyboxTree(folder("old/"), file("old/a", "a"), file("gone", "x"))))
  for (const images of [near, far]) await images.import(temp.at("base.tar"), { name: "base" })
})
afterAll(async () => {
  for (const images of [near, far]) await images[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})

const changes = [
  "busybox rm /gone && busybox rm -rf /old && busybox mkdir /old && echo new > /old/new",
  "echo data > /data && busybox chown 1000:7 /data && busybox chmod 640 /data && busybox ln /data /same",
  "busybox cp /bin/busybox /bin/su && busybox chmod 6755 /bin/su && busybox mkfifo /pipe",
  "busybox mkdir /shared && busybox chmod 3775 /shared",
  // What was written is the same whenever it was written.
  "busybox touch -d '2020-01-02 03:04:05' /old/new /data /bin/su /old /bin /shared",
].join(" && ")

async function stopped(images: Images, how = changes, name = "base"): Promise<SandboxId> {
  const spec = specOf(await images.use(name, "test"))
  await driver.create(spec, never)
  const sandbox = await driver.start(spec.id, never)
  expect(await text(sandbox, `${how} && echo done`, { user: "root" })).toBe("done\n")
  await driver.stop(spec.id)
  return spec.id
}

async function look(images: Images, name: string, command: string): Promise<string> {
  const spec = specOf(await images.use(name, "look"))
  await driver.create(spec, never)
  try {
    return await text(await driver.start(spec.id, never), command, { user: "root" })
  } finally {
    await driver.destroy(spec.id)
    images.release("look")
  }
}

/** Bytes of the volume that are in use. */
function used(): number {
  execFileSync("sync", ["--file-system", subject.root, join(subject.root, "volume")])
  const { blocks, bfree, bsize } = statfsSync(join(subject.root, "volume"))
  return (blocks - bfree) * bsize
}

const layersOf = (images: Images): string[] => images.store.catalog.layers().map(({ digest }) => digest.slice(7))
const drafts = (root: string): string[] => readdirSync(join(root, "drafts"))

describe("a stopped sandbox", () => {
  test("becomes the same image wherever images are kept, with everything as it was", async () => {
    const seen =
      "ls -A / /old; stat -c '%u:%g %a' /data /bin/su /shared; stat -c %h /same; cat /old/new /same; test -e /pipe || echo no"
    const ids: string[] = []
    for (const images of [near, far]) {
      const id = await stopped(images)
      ids.push(await images.commit(driver, id, "made:1"))
      await driver.destroy(id)
      const looks = await look(images, "made:1", seen)
      expect(looks).toContain("1000:7 640\n0:0 755\n0:0 3775\n2\nnew\ndata\nno\n")
      expect(looks).not.toContain("gone")
      expect(looks).toContain("/old:\nnew\n")
    }
    expect(ids[0]).toBe(ids[1])
    // Here it came with its folder, there it was copied.
    const insides = [near, far].map(({ store }) => store.catalog.layers().map(({ inside }) => inside))
    expect(insides.map((all) => all.filter((inside) => inside !== "root"))).toEqual([["data/root"], []])
  })

  test("stays, and goes on by itself", async () => {
    const id = await stopped(near, "echo one > /file")
    await near.commit(driver, id, "made:2")
    const again = await driver.start(id, never)
    expect(await text(again, "cat /file; echo two > /file; rm /etc/passwd", { user: "root" })).toBe("one\n")
    expect(await look(near, "made:2", "cat /file; wc -l < /etc/passwd")).toBe("one\n3\n")
    await driver.destroy(id)
    expect(await look(near, "made:2", "cat /file")).toBe("one\n")
  })

  test("is not copied where images are on its volume, and its layer goes with the image", async () => {
    const big = 64 * 2 ** 20
    const id = await stopped(near, `busybox dd if=/dev/urandom of=/big bs=1M count=64 2>/dev/null`)
    const before = used()
    const made = await near.commit(driver, id, "big")
    expect(used() - before).toBeLessThan(big / 8)
    const { digest } = near.inspect(made).layers.find(({ bytes }) => bytes === big) ?? { digest: "sha256:" as const }
    expect(readdirSync(near.store.folder(digest))).toContain("big")
    await driver.destroy(id)
    near.delete("big")
    near.release("test")
    await near.gc()
    expect(layersOf(near)).not.toContain(digest.slice(7))
    expect(readdirSync(join(driver.imagesFolder ?? "", "layers/sha256")).toSorted()).toEqual(layersOf(near).toSorted())
    // The kernel gives the room back in its own time.
    await expect.poll(() => used() - before, { timeout: 20_000 }).toBeLessThan(0)
  })

  test("twice gives one layer; on top of what was committed it gives the next", async () => {
    const id = await stopped(near, "echo one > /file; busybox touch -d '2020-01-02 03:04:05' /file")
    const first = await near.commit(driver, id, "first")
    expect(await near.commit(driver, id, "again")).toBe(first)
    await driver.destroy(id)
    const next = await stopped(near, "echo two > /file", "first")
    await near.commit(driver, next, "second")
    await driver.destroy(next)
    expect(await look(near, "second", "cat /file")).toBe("two\n")
    const [below, above] = [near.content("first").layers, near.content("second").layers]
    expect(above.slice(0, -1)).toEqual(below)
  })

  test("is not taken while it runs, nor what is no sandbox of an image, nor under a name that is none", async () => {
    const id = await stopped(near, "true")
    await expect(near.commit(driver, id, "Not A Name")).rejects.toMatchObject({ code: "invalid" })
    await expect(near.commit(driver, id, "host")).rejects.toMatchObject({ code: "invalid" })
    await driver.start(id, never)
    await expect(near.commit(driver, id, "x")).rejects.toMatchObject({ code: "conflict" })
    await driver.destroy(id)
    await expect(near.commit(driver, id, "x")).rejects.toMatchObject({ code: "not_found" })
    const host = specOf(await near.use("host", "test"))
    await driver.create(host, never)
    await expect(near.commit(driver, host.id, "x")).rejects.toMatchObject({ code: "invalid" })
    await driver.destroy(host.id)
    const foreign = await stopped(far, "true")
    await expect(near.commit(driver, foreign, "x")).rejects.toMatchObject({ code: "invalid" })
    await driver.destroy(foreign)
    expect(drafts(driver.imagesFolder ?? "")).toEqual([])
  })

  test("that is being taken when the caller has had enough stays, and nothing else does", async () => {
    const reason = new Error("enough")
    for (const images of [near, far]) {
      const id = await stopped(images, "for i in 1 2 3 4 5; do echo $i > /f$i; done")
      const layers = layersOf(images).length
      await expect(images.commit(driver, id, "never", AbortSignal.abort(reason))).rejects.toBe(reason)
      expect(await driver.exists(id)).toBe(true)
      expect(() => images.inspect("never")).toThrow()
      expect(layersOf(images).length).toBe(layers)
      await driver.destroy(id)
    }
    expect([...drafts(driver.imagesFolder ?? ""), ...drafts(temp.at("images"))]).toEqual([])
  })
})
