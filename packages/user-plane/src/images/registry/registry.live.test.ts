import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { silentLog } from "@warren/base/log.ts"
import { bundleProgram, Program } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { never, text } from "@warren/drivers/oci/testing/fixture.ts"
import { ociSubject } from "@warren/drivers/oci/testing/subject.ts"
import type { Image } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { digestBytes } from "../digest.ts"
import { Images } from "../images.ts"
import { mediaTypes } from "../manifest.ts"
import { writeTar } from "../tar/writer.ts"
import { busyboxTree, file, folder } from "../testing/archives.ts"
import { push, pushManifest, startRegistry } from "../testing/registry.ts"

const subject = ociSubject()
let driver: Driver
let temp: TempFolder
let images: Images
let registry: Awaited<ReturnType<typeof startRegistry>>

beforeAll(async () => {
  driver = await subject.open()
  temp = await TempFolder.make()
  registry = await startRegistry(temp.path)
  images = await Images.open({ root: temp.at("images"), log: silentLog })
})
afterAll(async () => {
  await images[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})

async function start(image: Image) {
  const spec = specOf(image)
  await driver.create(spec, never)
  const sandbox = await driver.start(spec.id, never)
  return Object.assign(sandbox, { [Symbol.asyncDispose]: () => driver.destroy(spec.id) })
}

const base = writeTar(busyboxTree())
const script = (name: string, says: string): Buffer =>
  writeTar([folder("bin/"), file(`bin/${name}`, `#!/bin/sh\necho ${says}\n`, { mode: 0o755 })])
const layersOf = (root: string): string[] => readdirSync(`${root}/layers/sha256`)

describe("a real registry", () => {
  test("two images that share a layer: one copy on disk, a program of each runs", async () => {
    const { host } = registry
    await push(host, "one", "1", [base, script("one", "I am one")])
    await push(host, "two", "1", [base, script("two", "I am two")])
    await images.pull(`${host}/one:1`)
    const before = layersOf(temp.at("images"))
    const events: string[] = []
    await images.pull(`${host}/two:1`, {
      progress: (event) => "layer" in event && events.push(`${event.kind} ${event.layer}`),
    })
    const shared = digestBytes(base)
    expect(events).toContain(`layer.present ${shared}`)
    // Its own layer is all that came; what Warren puts on top is the same for both.
    expect(layersOf(temp.at("images")).length).toBe(before.length + 1)
    const [one, two] = [await images.use(`${host}/one:1`, "a"), await images.use(`${host}/two:1`, "b")]
    expect(one.layers.filter((layer) => two.layers.includes(layer)).length).toBe(2)
    await using first = await start(one)
    await using second = await start(two)
    expect(await text(first, "one; two 2>/dev/null || echo no")).toBe("I am one\nno\n")
    expect(await text(second, "two; one 2>/dev/null || echo no")).toBe("I am two\nno\n")
  })

  test("an index: the platform's image is chosen, and by digest", async () => {
    const { host } = registry
    const mine = await push(host, "multi", "amd64", [base, script("arch", "amd64")])
    const theirs = await push(host, "multi", "arm64", [base, script("arch", "arm64")])
    const entry = (pushed: object, architecture: string): object => ({
      ...pushed,
      mediaType: mediaTypes.ociManifest,
      platform: { os: "linux", architecture },
    })
    const index = {
      schemaVersion: 2,
      mediaType: mediaTypes.ociIndex,
      manifests: [entry(theirs, "arm64"), entry(mine, "amd64")],
    }
    const { digest } = await pushManifest(host, "multi", "all", mediaTypes.ociIndex, Buffer.from(JSON.stringify(index)))
    const own = process.arch === "arm64" ? theirs : mine
    expect(await images.pull(`${host}/multi:all`)).toBe(own.digest)
    expect(await images.pull(`${host}/multi@${digest}`, { platform: "linux/arm64" })).toBe(theirs.digest)
    await expect(images.pull(`${host}/multi:all`, { platform: "linux/s390x" })).rejects.toMatchObject({
      code: "not_found",
      hint: "it is there for linux/arm64, linux/amd64",
    })
  })

  test("what skopeo pushed comes, Docker's manifests and zstd too; what it writes to disk is imported as the same image", async () => {
    const { host } = registry
    writeFileSync(temp.at("tree.tar"), base)
    await images.import(temp.at("tree.tar"), { name: "tree" })
    const skopeo = (...args: string[]): Buffer =>
      execFileSync("skopeo", ["--insecure-policy", "copy", "--quiet", ...args], { stdio: ["pipe", "pipe", "pipe"] })
    const from = `docker://${host}/one:1`
    skopeo("--src-tls-verify=false", "--dest-tls-verify=false", "--format=v2s2", from, `docker://${host}/v2s2:1`)
    skopeo(
      "--src-tls-verify=false",
      "--dest-tls-verify=false",
      "--dest-compress-format=zstd",
      "--format=oci",
      from,
      `docker://${host}/zstd:1`,
    )
    skopeo("--src-tls-verify=false", from, `oci:${temp.at("layout")}:tag`)
    skopeo("--src-tls-verify=false", from, `oci-archive:${temp.at("layout.tar")}:tag`)
    skopeo("--src-tls-verify=false", from, `docker-archive:${temp.at("saved.tar")}:saved/image:1`)
    const layers = images.inspect(`${host}/one:1`).layers
    const count = layersOf(temp.at("images")).length
    await images.pull(`${host}/v2s2:1`)
    await images.pull(`${host}/zstd:1`)
    const [layout] = await images.import(temp.at("layout"), { name: "layout:1" })
    await images.import(temp.at("layout.tar"), { name: "layout:2" })
    await images.import(temp.at("saved.tar"))
    expect(layout).toBe(images.inspect(`${host}/one:1`).id)
    for (const name of [`${host}/v2s2:1`, `${host}/zstd:1`, "layout:1", "layout:2", "saved/image:1"]) {
      expect(images.inspect(name).layers).toEqual(layers)
    }
    expect(layersOf(temp.at("images")).length).toBe(count)
  })

  test("killed at any moment, a pull goes on where it was", { timeout: 120_000 }, async () => {
    const { host } = registry
    const big = writeTar([folder("data/"), { ...file("data/big"), content: randomBytes(40_000_000) }])
    const many = writeTar(Array.from({ length: 2000 }, (_, index) => file(`many/${index}`, String(index))))
    await push(host, "big", "1", [base, big, many])
    const root = temp.at("killed")
    mkdirSync(root)
    const program = await bundleProgram(new URL("../testing/puller.ts", import.meta.url), temp)
    const kills = { downloading: 0, extracting: 0, blobs: 0 }
    for (let round = 0; round < 12; round++) {
      await using puller = new Program(program, [root, `${host}/big:1`])
      const lines = round % 6
      const wanted = [
        "layer.downloading",
        "layer.downloading",
        "layer.extracting",
        "layer.extracting",
        "layer.done",
        "open",
      ][lines]
      for (let line = await puller.line(); line !== "done"; line = await puller.line()) {
        if (wanted !== undefined && line.includes(wanted)) break
      }
      if (lines % 2 === 1) await new Promise((resolve) => setTimeout(resolve, 5 * round))
      puller.kill()
      await puller.ended
      if (wanted === "layer.downloading") kills.downloading++
      if (wanted === "layer.extracting") kills.extracting++
      if (readdirSync(`${root}/blobs`).some((name) => statSync(`${root}/blobs/${name}`).size > 0)) kills.blobs++
    }
    expect(kills.blobs).toBeGreaterThan(0)
    await using again = await Images.open({ root, log: silentLog })
    expect(readdirSync(`${root}/drafts`)).toEqual([])
    expect(layersOf(root).toSorted()).toEqual(
      again.store.catalog
        .layers()
        .map(({ digest }) => digest.slice(7))
        .toSorted(),
    )
    const id = await again.pull(`${host}/big:1`)
    expect(again.inspect(id).layers.map(({ entries }) => entries)).toContain(2000)
    expect(readdirSync(`${root}/blobs`)).toEqual([])
    await using sandbox = await start(await again.use(id, "sandbox"))
    expect(await text(sandbox, "ls /many | wc -l; stat -c %s /data/big")).toBe("2000\n40000000\n")
    rmSync(temp.at("registry"), { recursive: true, force: true })
  })
})
