import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { boundaryOf, partsOf } from "./multipart.ts"

interface Read {
  readonly name: string
  readonly filename: string | undefined
  readonly bytes: string
}

async function read(body: Buffer, boundary: string, cuts: readonly number[]): Promise<Read[]> {
  const parts: Read[] = []
  for await (const { name, filename, body: pieces } of partsOf(cut(body, cuts), boundary)) {
    let bytes = ""
    for await (const piece of pieces) bytes += piece.toString("hex")
    parts.push({ name, filename, bytes })
  }
  return parts
}

/** In pieces of whatever size: where a network cuts is nobody's choice. */
async function* cut(body: Buffer, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (const size of cuts) {
    if (at >= body.length) return
    yield body.subarray(at, (at += size))
  }
  if (at < body.length) yield body.subarray(at)
}

describe("a form", () => {
  test("is read as it was written, however it is cut", async () => {
    const files = fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 4 })
    const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(files, cuts, async (contents, sizes) => {
        const form = new FormData()
        for (const [at, bytes] of contents.entries()) form.append("file", new Blob([bytes]), `/tmp/f "${at}" ä`)
        const request = new Request("http://form", { method: "POST", body: form })
        const boundary = boundaryOf(request.headers.get("content-type") ?? "")
        const body = Buffer.from(await request.arrayBuffer())
        const wanted = contents.map((bytes, at) => ({
          ...{ name: "file", filename: `/tmp/f "${at}" ä`, bytes: Buffer.from(bytes).toString("hex") },
        }))
        expect(await read(body, boundary, sizes)).toEqual(wanted)
      }),
      { numRuns: 60 },
    )
  })

  test("that ends too soon, or is nonsense, is refused", async () => {
    const whole = Buffer.from(
      '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\ndata\r\n--b--\r\n',
    )
    for (let end = 0; end < whole.length - 4; end++) {
      await expect(read(whole.subarray(0, end), "b", [])).rejects.toMatchObject({ code: "invalid" })
    }
    await expect(read(Buffer.from(`--b\r\n${"x".repeat(20_000)}`), "b", [])).rejects.toMatchObject({ code: "invalid" })
    expect(() => boundaryOf("multipart/form-data")).toThrow("no boundary")
    expect(boundaryOf('multipart/form-data; boundary="with space"')).toBe("with space")
  })
})
