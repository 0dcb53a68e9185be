import { describe, expect, test } from "vitest"
import { errorOf } from "../testing/http-system.ts"
import { ThingsApi } from "../testing/things-api.ts"

describe("routes", () => {
  test("take their input from path and query, and fill in defaults", async () => {
    const api = new ThingsApi()
    const response = await api.get("/v1/things/a%20b?limit=7&unknown=1&__proto__=1")
    expect([response.status, await response.json()]).toEqual([200, { id: "a b", limit: 7, text: "", caller: "me" }])
    expect(await (await api.get("/v1/things/x?text=ü", { method: "DELETE" })).json()).toMatchObject({
      id: "x",
      limit: 5,
      text: "ü",
    })
  })

  test("take their input from the body, and the path wins", async () => {
    const api = new ThingsApi()
    const response = await api.post(JSON.stringify({ id: "other", limit: 2, text: "é" }))
    expect(await response.json()).toEqual({ id: "a", limit: 2, text: "é", caller: "me" })
    expect(await (await api.post("")).json()).toMatchObject({ id: "a", limit: 5 })
    const odd = await api.post('{"__proto__":{"text":"polluted"},"limit":1}')
    expect(await odd.json()).toEqual({ id: "a", limit: 1, text: "", caller: "me" })
  })

  test.each([
    ["a field that is wrong", "/v1/things/a?limit=11", "limit"],
    ["a field that is no number", "/v1/things/a?limit=x", "limit"],
    ["a field that is missing", "/v1/fail", "kind"],
  ])("refuse %s by name", async (_, path, field) => {
    const response = await new ThingsApi().get(path)
    expect(response.status).toBe(400)
    expect(await errorOf(response)).toMatchObject({
      code: "invalid",
      message: expect.stringContaining(field),
      requestId: response.headers.get("x-request-id"),
    })
  })

  test.each([
    ["broken JSON", "{"],
    ["a list", "[1]"],
    ["null", "null"],
    ["a text", '"x"'],
    ["JSON in Latin-1", Buffer.from('{"text":"é"}', "latin1")],
    ["UTF-8 that is cut off", new Uint8Array([0x7b, 0x22, 0xc3])],
    ["100,000 brackets", "[".repeat(100_000)],
    ["half a character", String.raw`{"text":"\ud83d"}`],
    ["the other half, as a name", String.raw`{"limit":1,"\uDE00":{"text":["x"]}}`],
  ])("refuse a body that is %s", async (_, body) => {
    const response = await new ThingsApi().post(body)
    expect([response.status, (await errorOf(response))["code"]]).toEqual([400, "invalid"])
  })

  test("take a body as long as the limit, and not one byte longer, whatever its length claims to be", async () => {
    const api = new ThingsApi()
    const body = (bytes: number): string => JSON.stringify({ text: "x".repeat(bytes - '{"text":""}'.length) })
    expect((await api.post(body(1024 * 1024))).status).toBe(200)
    const refused = await api.post(body(1024 * 1024 + 1))
    expect([refused.status, (await errorOf(refused))["code"]]).toEqual([429, "limit"])
    let pulled = 0
    const endless = new ReadableStream({
      pull: (controller) => (pulled++, controller.enqueue(new Uint8Array(64 * 1024).fill(32))),
    })
    expect((await api.post(endless)).status).toBe(429)
    expect(pulled).toBeLessThan(40)
  })

  test("a character that is cut between two chunks of a body stays whole", async () => {
    const bytes = Buffer.from('{"text":"😀"}')
    const chunks = [...bytes].map((byte) => new Uint8Array([byte]))
    const body = new ReadableStream({
      pull: (controller) => {
        const next = chunks.shift()
        if (next) controller.enqueue(next)
        else controller.close()
      },
    })
    expect(await (await new ThingsApi().post(body)).json()).toMatchObject({ text: "😀" })
    const escaped = String.raw`{"text":"\ud83d\ude00 and \\ud83d"}`
    expect(await (await new ThingsApi().post(escaped)).json()).toMatchObject({ text: String.raw`😀 and \ud83d` })
  })

  test("ask who it is before anything is read", async () => {
    const api = new ThingsApi()
    const response = await Promise.resolve(api.app.request("/v1/things/a?limit=99"))
    expect([response.status, (await errorOf(response))["code"]]).toEqual([401, "unauthenticated"])
  })

  test.each([
    ["GET", "/nowhere"],
    ["GET", "/v1/things"],
    ["PUT", "/v1/things/a"],
    ["POST", "/v1/thing.hidden"],
  ])("answer %s %s, which is not there, with a typed error", async (method, path) => {
    const response = await new ThingsApi().get(path, { method })
    expect([response.status, await errorOf(response)]).toMatchObject([
      404,
      { code: "not_found", message: `there is no ${method} ${path}` },
    ])
  })

  test("tell a fault with its status, without its cause", async () => {
    const response = await new ThingsApi().get("/v1/fail?kind=fault")
    const error = await errorOf(response)
    expect(response.status).toBe(409)
    expect(error).toEqual({
      code: "conflict",
      message: "taken",
      hint: "use another",
      subject: "thing:1",
      requestId: expect.stringMatching(/^req_/),
    })
  })

  test.each(["bug", "text", "shape"])("tell a bug (%s) as `internal` without its words, and log it", async (kind) => {
    const api = new ThingsApi()
    const response = await api.get(`/v1/fail?kind=${kind}`)
    const text = await response.text()
    expect([response.status, JSON.parse(text)]).toMatchObject([500, { error: { code: "internal" } }])
    expect(text).not.toContain("hunter2")
    expect(api.logged).toMatchObject([{ level: "error", event: "http.bug", path: "/v1/fail" }])
    if (kind !== "shape") expect(api.logged[0]?.["message"]).toBe("password=hunter2")
  })
})
