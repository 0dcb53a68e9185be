import { readdirSync } from "node:fs"
import { randomBytes } from "node:crypto"
import type { ServerResponse } from "node:http"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { digestBytes } from "../digest.ts"
import { Images } from "../images.ts"
import { writeTar } from "../tar/writer.ts"
import { file, folder } from "../testing/archives.ts"
import { FakeRegistry } from "../testing/fake-registry.ts"
import type { PullOptions } from "./pull.ts"

const content = randomBytes(300_000)
const layer = writeTar([folder("data/"), { ...file("data/random"), content }])
const other = writeTar([file("data/other", "x")])
const tries = { triesMax: 4, baseMs: 1, capMs: 5 }
/** Layers keep owners, which only root can give. */
const isRoot = process.getuid?.() === 0
let temp: TempFolder
let images: Images
let registry: FakeRegistry

beforeEach(async () => {
  temp = await TempFolder.make()
  images = await Images.open({ root: temp.at("images"), log: silentLog })
  registry = await FakeRegistry.start([layer, other])
})
afterEach(async () => {
  await registry[Symbol.asyncDispose]()
  await images[Symbol.asyncDispose]()
  await temp[Symbol.asyncDispose]()
})

const pull = (options: PullOptions = {}) => images.pull(registry.name, { tries, ...options })
const fault = (code: string) => expect.objectContaining({ constructor: Fault, code })
const layersOnDisk = (): string[] => readdirSync(temp.at("images/layers/sha256"))
const halves = (): string[] => readdirSync(temp.at("images/blobs"))

/** Answers the first `count` requests whose address contains `part`. */
function first(count: number, part: string, answer: (response: ServerResponse) => void): void {
  let left = count
  registry.before = ({ url = "" }, response) => {
    if (!url.includes(part) || left-- <= 0) return false
    answer(response)
    return true
  }
}

describe.skipIf(!isRoot)("pulling", () => {
  test("brings an image once: the second time nothing is downloaded", async () => {
    const events: string[] = []
    const id = await pull({ progress: ({ kind }) => events.push(kind) })
    expect(id).toBe(digestBytes(registry.manifest))
    expect(events[0]).toBe("resolved")
    expect(events.filter((kind) => kind === "layer.done").length).toBe(2)
    expect(images.inspect(registry.name)).toMatchObject({ id, env: ["FROM=registry"], platform: "linux/amd64" })
    expect(layersOnDisk().length).toBe(3)
    registry.asked.length = 0
    await pull()
    // The manifest, because a name moves, and the config.
    expect(registry.asked.length).toBe(2)
    expect(halves()).toEqual([])
  })

  test("is not disturbed by collecting, at whatever moment", async () => {
    let isDone = false
    const pulling = pull().finally(() => (isDone = true))
    while (!isDone) await images.gc({ blobsMs: 0, stepsMs: 0 })
    expect(images.inspect(await pulling).layers.length).toBe(3)
    expect(layersOnDisk().length).toBe(3)
  })

  test.each([429, 500, 502, 503])("tries again after %i", async (status) => {
    first(2, "blobs", (response) => void response.writeHead(status).end("later"))
    await pull()
    first(2, "manifests", (response) => void response.writeHead(status).end("later"))
    await pull()
  })

  test.each([
    [401, "unauthenticated"],
    [403, "forbidden"],
    [404, "not_found"],
  ])("says what %i means, at once", async (status, code) => {
    first(100, "manifests", (response) => void response.writeHead(status).end())
    await expect(pull()).rejects.toEqual(fault(code))
    expect(registry.asked.length).toBe(1)
    expect(images.list().length).toBe(1)
  })

  test.each([
    [429, "limit"],
    [500, "unavailable"],
  ])("gives up on %i after its tries", async (status, code) => {
    first(100, "manifests", (response) => void response.writeHead(status).end())
    await expect(pull()).rejects.toEqual(fault(code))
    expect(registry.asked.length).toBe(tries.triesMax)
  })

  test("waits as long as it is told to", async () => {
    first(1, "manifests", (response) => void response.writeHead(429, { "retry-after": "0.2" }).end())
    const start = performance.now()
    await pull()
    expect(performance.now() - start).toBeGreaterThan(190)
  })

  test("a connection that breaks goes on where it stopped", async () => {
    const { digest, bytes } = registry.layer
    first(1, digest, (response) => {
      response.writeHead(200, { "content-length": bytes.length })
      response.write(bytes.subarray(0, 100_000), () => setTimeout(() => response.destroy(), 50))
    })
    await pull()
    const again = registry.asked.filter((one) => one.includes(digest))
    expect(again.length).toBe(2)
    expect(again[1]).toMatch(/ bytes=[1-9]\d*-$/)
  })

  test("goes on as long as every try brings something", async () => {
    const { digest, bytes } = registry.layer
    let at = 0
    registry.before = ({ url = "", headers }, response) => {
      if (!url.includes(digest)) return false
      const start = Number(/\d+/.exec(headers.range ?? "")?.[0] ?? 0)
      at = Math.min(start + 30_000, bytes.length)
      response.writeHead(start > 0 ? 206 : 200, {
        "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
      })
      response.write(bytes.subarray(start, at), () => setTimeout(() => response.destroy(), 20))
      return true
    }
    await pull()
    expect(registry.asked.filter((one) => one.includes(digest)).length).toBeGreaterThan(tries.triesMax)
  })

  test("a registry that falls silent is asked again", async () => {
    const { digest, bytes } = registry.layer
    first(1, digest, (response) => void response.writeHead(200).write(bytes.subarray(0, 1000)))
    await pull({ silenceMs: 100 })
    first(1, "manifests", () => undefined)
    await pull({ silenceMs: 100 })
    first(100, "manifests", () => undefined)
    await expect(pull({ silenceMs: 20 })).rejects.toEqual(fault("timeout"))
  })

  test("a server that knows no ranges is asked for the whole", async () => {
    const { digest, bytes } = registry.layer
    let count = 0
    registry.before = ({ url = "" }, response) => {
      if (!url.includes(digest)) return false
      response.writeHead(200)
      if (count++ === 0) response.write(bytes.subarray(0, 50_000), () => setTimeout(() => response.destroy(), 20))
      else response.end(bytes)
      return true
    }
    await pull()
    expect(count).toBe(2)
  })

  test("a blob that stays short is unavailable, and its part is kept for the next time", async () => {
    const { digest, bytes } = registry.layer
    first(
      100,
      digest,
      (response) => void response.writeHead(206, { "content-range": `bytes 0-1/${bytes.length}` }).end(),
    )
    await expect(pull()).rejects.toEqual(fault("unavailable"))
    registry.before = () => false
    await pull()
  })

  test("a blob of other bytes is refused, and nothing of it stays", async () => {
    const { digest, bytes } = registry.layer
    first(1, digest, (response) => void response.writeHead(200).end(Buffer.alloc(bytes.length, 1)))
    await expect(pull()).rejects.toThrow(/not what its digest says/)
    expect(halves()).not.toContain(digest.slice(7))
    await pull()
  })

  test("a blob longer than the manifest says is refused", async () => {
    const { digest, bytes } = registry.layer
    first(1, digest, (response) => void response.writeHead(200).end(Buffer.concat([bytes, bytes])))
    await expect(pull()).rejects.toThrow(/longer than the manifest/)
  })

  test("a manifest that is not the one asked for by digest is refused", async () => {
    const asked = digestBytes("something else")
    await expect(images.pull(`${registry.host}/test@${asked}`, { tries })).rejects.toThrow(/the manifest is not what/)
  })

  test("a layer that is not what the config says is refused", async () => {
    const wrong = await FakeRegistry.start([layer])
    await using _ = wrong
    const manifest = JSON.parse(wrong.manifest.toString()) as { layers: object[] }
    const theirs = JSON.parse(registry.manifest.toString()) as { layers: object[] }
    manifest.layers = [theirs.layers[1] ?? {}]
    wrong.before = ({ url = "" }, response) => {
      const blob = registry.blobs.get(url.split("/").at(-1) ?? "")
      if (url.includes("manifests")) response.writeHead(200).end(JSON.stringify(manifest))
      else if (blob && !wrong.blobs.has(digestBytes(blob))) response.writeHead(200).end(blob)
      else return false
      return true
    }
    await expect(images.pull(wrong.name, { tries })).rejects.toThrow(/the layer is not what its digest says/)
    expect(layersOnDisk()).toEqual([])
  })

  test.each([
    ["no JSON", "<html>"],
    ["the first version", JSON.stringify({ schemaVersion: 1, fsLayers: [] })],
    ["too long", `{"schemaVersion":2,"x":"${"y".repeat(5_000_000)}"}`],
    [
      "a path for a digest",
      JSON.stringify({ schemaVersion: 2, config: { mediaType: "", digest: "sha256:../../etc", size: 1 }, layers: [] }),
    ],
  ])("a manifest that is %s is refused", async (_, text) => {
    first(100, "manifests", (response) => void response.writeHead(200).end(text))
    const failure = await pull().catch((thrown: unknown) => thrown)
    expect(failure).toBeInstanceOf(Fault)
    expect(["invalid", "limit"]).toContain((failure as Fault).code)
  })

  test("redirects of blobs are followed, without the password", async () => {
    await using mirror = await FakeRegistry.start([layer, other])
    const seen: (string | undefined)[] = []
    mirror.before = ({ headers }) => void seen.push(headers.authorization)
    registry.before = ({ url = "", headers }, response) => {
      if (headers.authorization === undefined) response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end()
      else if (url.includes("blobs")) response.writeHead(307, { location: `http://${mirror.host}${url}` }).end()
      else return false
      return true
    }
    await expect(pull()).rejects.toEqual(fault("unauthenticated"))
    await pull({ credentials: { username: "u", password: "p" } })
    expect(seen.length).toBe(3)
    expect(seen.every((header) => header === undefined)).toBe(true)
  })

  test("a redirect to what is not encrypted, or without end, is refused", async () => {
    first(100, "blobs", (response) => void response.writeHead(307, { location: "http://registry.example/x" }).end())
    await expect(pull()).rejects.toEqual(fault("forbidden"))
    registry.before = ({ url = "" }, response) => {
      if (url.includes("blobs")) response.writeHead(307, { location: url }).end()
      return url.includes("blobs")
    }
    await expect(pull()).rejects.toThrow(/circles/)
  })

  test("asks the token service, with the password if there is one", async () => {
    const asked: string[] = []
    registry.before = ({ url = "", headers }, response) => {
      if (url.startsWith("/token")) {
        asked.push(`${url} ${headers.authorization ?? "nobody"}`)
        response.writeHead(200).end(JSON.stringify({ token: "abc" }))
      } else if (headers.authorization === "Bearer abc") return false
      else {
        const challenge = `Bearer realm="http://${registry.host}/token",service="s",scope="repository:test:pull"`
        response.writeHead(401, { "www-authenticate": challenge }).end()
      }
      return true
    }
    await pull()
    expect(asked).toEqual(["/token?service=s&scope=repository%3Atest%3Apull nobody"])
    await images.pull(registry.name, { tries, credentials: { username: "u", password: "p" } })
    expect(asked[1]).toContain("Basic dTpw")
  })

  test("stops when told to, with the reason, and goes on later with what it had", async () => {
    const { digest, bytes } = registry.layer
    const stop = new AbortController()
    first(1, digest, (response) => {
      response.writeHead(200, { "content-length": bytes.length })
      response.write(bytes.subarray(0, 100_000))
    })
    const reason = new Fault("cancelled", "enough")
    const progress: PullOptions["progress"] = (event) => {
      if (event.kind === "layer.downloading" && event.bytes > 0 && event.totalBytes === bytes.length) stop.abort(reason)
    }
    await expect(pull({ progress, signal: stop.signal })).rejects.toBe(reason)
    expect(halves()).toContain(digest.slice(7))
    await pull()
    expect(registry.asked.at(-1) ?? "").toMatch(/bytes=\d+-$/)
  })

  test("two pulls at once download a layer once", async () => {
    await Promise.all([pull(), pull(), pull()])
    expect(registry.asked.filter((one) => one.includes(registry.layer.digest)).length).toBe(1)
  })

  test("without encryption only to this machine", async () => {
    const fetched: string[] = []
    const spy = (address: URL): Promise<Response> => {
      fetched.push(address.protocol)
      return Promise.resolve(new Response("", { status: 404 }))
    }
    for (const name of ["registry.example/x", "10.0.0.1:5000/x", "localhost:5000/x", "127.1.2.3/x", "debian"]) {
      await images.pull(name, { fetch: spy as unknown as typeof fetch }).catch(() => undefined)
    }
    await images
      .pull("10.0.0.1:5000/x", { fetch: spy as unknown as typeof fetch, isPlainHttp: true })
      .catch(() => undefined)
    expect(fetched).toEqual(["https:", "https:", "http:", "http:", "https:", "http:"])
  })
})
