import { connect } from "node:net"
import { eventually } from "@warren/base/testing/eventually.ts"
import { pattern } from "@warren/base/testing/pattern.ts"
import { settles } from "@warren/base/testing/settles.ts"
import fc from "fast-check"
import { isStream, type Contract } from "../contract.ts"
import { userPlane } from "../user-plane.ts"
import { partOf } from "./range.ts"
import { describe, expect, test } from "vitest"
import { errorOf, served } from "../testing/http-system.ts"

const mebibyte = 1024 * 1024
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer())

test("every stream of the user plane that has a route says what its body is", () => {
  for (const [name, entry] of Object.entries(userPlane as Contract)) {
    if (isStream(entry) && entry.http)
      expect([name, entry.body]).toEqual([name, expect.stringMatching(/^(bytes|result|socket)$/)])
    if (isStream(entry) && entry.size) expect(userPlane).toHaveProperty([entry.size.call])
  }
})

describe("bytes down", () => {
  test.each([0, 1, 10_000, 3 * mebibyte + 7])("are the body, exactly: %i", (bytes) =>
    served(async (api) => {
      api.blobs.set("a", pattern(bytes))
      const response = await api.fetch("/v1/blobs/a")
      expect([response.status, response.headers.get("content-type"), response.headers.get("accept-ranges")]).toEqual([
        200,
        "application/octet-stream",
        "bytes",
      ])
      expect(response.headers.get("x-content-type-options")).toBe("nosniff")
      expect((await bytesOf(response)).equals(pattern(bytes))).toBe(true)
      expect(api.events).toEqual(["disposed"])
    }),
  )

  test.each([
    ["bytes=0-9", 206, "bytes 0-9/1000", 0, 10],
    ["bytes=990-", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=990-5000", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=-10", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=-5000", 206, "bytes 0-999/1000", 0, 1000],
    ["bytes=999-999", 206, "bytes 999-999/1000", 999, 1000],
    ["bytes=0-1,5-6", 200, null, 0, 1000],
    ["lines=0-1", 200, null, 0, 1000],
    ["bytes=9-1", 200, null, 0, 1000],
    ["bytes=-", 200, null, 0, 1000],
    ["bytes=x", 200, null, 0, 1000],
  ])("Range %s gives %i", (range, status, contentRange, from, to) =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const response = await api.fetch("/v1/blobs/a", { headers: { range } })
      expect([response.status, response.headers.get("content-range")]).toEqual([status, contentRange])
      expect((await bytesOf(response)).equals(pattern(1000).subarray(from, to))).toBe(true)
    }),
  )

  test.each(["bytes=1000-", "bytes=1000-2000", "bytes=-0"])("Range %s is outside", (range) =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const response = await api.fetch("/v1/blobs/a", { headers: { range } })
      expect([response.status, response.headers.get("content-range")]).toEqual([416, "bytes */1000"])
      expect(await errorOf(response)).toMatchObject({ code: "invalid" })
      expect(api.events).toEqual([])
    }),
  )

  test("a part that is asked for in the query, or of a version that may be gone, is no Range", () =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const asked = await api.fetch("/v1/blobs/a?offset=5&limit=3", { headers: { range: "bytes=0-1" } })
      expect([asked.status, await bytesOf(asked)]).toEqual([200, pattern(1000).subarray(5, 8)])
      const headers = { range: "bytes=0-1", "if-range": '"x"' }
      expect((await api.fetch("/v1/blobs/a", { headers })).status).toBe(200)
    }))

  test("a part is within what is there, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.nat(50),
        fc.oneof(fc.nat(60), fc.constant("")),
        fc.oneof(fc.nat(60), fc.constant("")),
        (size, a, b) => {
          const part = partOf(`bytes=${a}-${b}`, size)
          if (typeof part !== "object") return
          expect(part.limit).toBeGreaterThan(0)
          expect(part.offset + part.limit).toBeLessThanOrEqual(size)
          if (a !== "") expect(part.offset).toBe(a)
          else expect(part.offset + part.limit).toBe(size)
        },
      ),
    )
  })

  test("what fails before the first byte is answered with its status", () =>
    served(async (api) => {
      const response = await api.fetch("/v1/blobs/nothing")
      expect([response.status, (await errorOf(response))["code"]]).toEqual([404, "not_found"])
      const part = await api.fetch("/v1/blobs/nothing", { headers: { range: "bytes=0-1" } })
      expect(part.status).toBe(404)
      expect((await fetch(`http://127.0.0.1:${api.port}/v1/blobs/nothing`)).status).toBe(401)
      expect(api.events).toEqual(["disposed"])
    }))

  test.each(["breaks", "liar"])("what fails after it breaks the answer off (%s)", (name) =>
    served(async (api) => {
      api.blobs.set("breaks", pattern(50_000))
      const headers: Record<string, string> = name === "liar" ? { range: "bytes=0-49" } : {}
      const response = await api.fetch(`/v1/blobs/${name}`, { headers })
      expect(response.ok).toBe(true)
      await expect(response.arrayBuffer()).rejects.toThrow()
      await eventually(() => api.events.includes("disposed"))
    }),
  )

  test("a reader that does not read holds them back; when it goes away they end", () =>
    served(async (api) => {
      const socket = connect(api.port, "127.0.0.1")
      socket.on("error", () => undefined)
      socket.pause()
      socket.write("GET /v1/blobs/endless HTTP/1.1\r\nhost: x\r\nauthorization: me\r\n\r\n")
      await eventually(() => api.produced > 0)
      expect(await settles(() => api.produced)).toBeLessThan(64 * mebibyte)
      expect(api.events).toEqual([])
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
      expect(api.events.filter((event) => event === "disposed").length).toBe(1)
      expect(api.logged).toEqual([])
    }))
})

describe("bytes up", () => {
  test.each([0, 1, 5 * mebibyte + 3])(
    "are taken from the body, exactly, and answered with the last message: %i",
    (bytes) =>
      served(async (api) => {
        const response = await api.fetch("/v1/blobs/a", { method: "PUT", body: new Uint8Array(pattern(bytes)) })
        expect([response.status, await response.json()]).toEqual([200, { bytes }])
        expect(api.blobs.get("a")?.equals(pattern(bytes))).toBe(true)
        expect(api.events).toEqual(["disposed"])
      }),
  )

  test("a handler that fails in the middle is answered with its fault", () =>
    served(async (api) => {
      const body = new Uint8Array(pattern(5 * mebibyte))
      const response = await api.fetch("/v1/blobs/a?bytesMax=1000", { method: "PUT", body })
      expect([response.status, (await errorOf(response))["message"]]).toEqual([429, "the disk is full"])
      expect([api.blobs.size, api.events]).toEqual([0, ["disposed"]])
    }))

  test("a handler that does not take them holds the sender back", () =>
    served(async (api) => {
      api.isDeaf = true
      const socket = connect(api.port, "127.0.0.1").on("error", () => undefined)
      socket.write("PUT /v1/blobs/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 200000000\r\n\r\n")
      const piece = Buffer.alloc(mebibyte)
      let sent = 0
      while (!socket.writableNeedDrain || (await settles(() => socket.bytesWritten)) > sent) {
        sent = socket.bytesWritten
        if (!socket.writableNeedDrain) socket.write(piece)
        await new Promise(setImmediate)
      }
      expect(socket.bytesWritten).toBeLessThan(64 * mebibyte)
      expect(api.taken).toBeLessThan(mebibyte)
      api.isDeaf = false
      await eventually(() => api.taken > mebibyte / 2)
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
    }))

  test("a sender that goes away in the middle leaves nothing", () =>
    served(async (api) => {
      const socket = connect(api.port, "127.0.0.1").on("error", () => undefined)
      socket.write("PUT /v1/blobs/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 100\r\n\r\nhalf of it")
      await eventually(() => api.taken > 0)
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
      expect(api.blobs.size).toBe(0)
      await api.run("words")
      expect(api.logged).toEqual([])
    }))
})
