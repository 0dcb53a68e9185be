import { gunzipSync } from "node:zlib"
import { request } from "node:http"
import { once } from "node:events"
import { Validator } from "@seriousme/openapi-schema-validator"
import { afterAll, describe, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { warren } = system
const plain = { network: { mode: "none" } } as const

const create = (body: object, key?: string): Promise<Response> =>
  system.fetch("/v1/sessions", {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
  })
const idOf = async (answer: Response): Promise<string> => ((await answer.json()) as { id: string }).id

describe("what makes something", () => {
  test("answers 201, once for each key, also after the runner was killed", async () => {
    const body = { ...plain, name: "once" }
    const first = await create(body, "key-1")
    expect(first.status).toBe(201)
    const told = (await first.json()) as { id: string; state: string; acquireSource: string }
    expect(told).toMatchObject({ state: "running", acquireSource: "cold" })
    const again = await create(body, "key-1")
    expect(again.status).toBe(201)
    expect(await again.json()).toEqual(told)
    expect((await create({ ...body, name: "other" }, "key-1")).status).toBe(409)
    expect((await create(body)).status).toBe(409)
    await system.restartRunner()
    expect(await idOf(await create(body, "key-1"))).toBe(told.id)
    await (await warren.sessions.get(told.id)).delete()
  })

  test("asked at once with one key, it is one", async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => create(plain, "key-2")))
    const ids = new Set(await Promise.all(answers.map(idOf)))
    expect(ids.size).toBe(1)
    for (const id of ids) await (await warren.sessions.get(id)).delete()
  })

  test("refuses a key that is none", async () => {
    expect((await create(plain, "x".repeat(256))).status).toBe(400)
  })
})

describe("answers", () => {
  test("have the id of their request, also when they refuse", async () => {
    for (const path of ["/v1/health", "/v1/sessions/none", "/nowhere"]) {
      const answer = await system.fetch(path)
      expect(answer.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{20}$/)
      const { error } = (await answer.json()) as { error?: { requestId: string } }
      if (!answer.ok) expect(error?.requestId).toBe(answer.headers.get("x-request-id"))
    }
  })

  test("are compressed for those who take that, if they are big", async () => {
    const ask = async (encoding: string): Promise<{ encoding: string | undefined; body: Buffer }> => {
      const headers = { "accept-encoding": encoding, authorization: `Bearer ${system.token}` }
      const asked = request(`${system.url}/v1/openapi.json`, { headers }).end()
      const [answer] = (await once(asked, "response")) as [NodeJS.ReadableStream & { headers: Record<string, string> }]
      const pieces: Buffer[] = []
      for await (const piece of answer) pieces.push(piece as Buffer)
      return { encoding: answer.headers["content-encoding"], body: Buffer.concat(pieces) }
    }
    const [packed, plainly] = [await ask("br, gzip;q=0.5"), await ask("gzip;q=0")]
    expect(packed.encoding).toBe("gzip")
    expect(plainly.encoding).toBeUndefined()
    expect(gunzipSync(packed.body).equals(plainly.body)).toBe(true)
    expect(packed.body.length).toBeLessThan(plainly.body.length / 5)
    expect((await system.fetch("/v1/health")).headers.get("content-encoding")).toBeNull()
  })
})

describe("the API says of itself", () => {
  test("what machines read", async () => {
    const document = (await (await system.fetch("/v1/openapi.json")).json()) as Record<string, unknown>
    expect((await new Validator().validate(document)).valid).toBe(true)
  })

  test("what people read, from nowhere else and without scripts", async () => {
    const answer = await fetch(`${system.url}/docs`)
    const page = await answer.text()
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'")
    expect(page).toContain("<code>/v1/sessions/{session}/exec</code>")
    expect(page).toContain("echo hello")
    expect(page).not.toMatch(/<script|https?:\/\//)
  })
})

describe("when the control plane is killed and comes back", () => {
  test("programs go on, and their readers get what they missed", async () => {
    await using session = await warren.sessions.create(plain)
    const process = await session.spawn(["cat"], { stdin: true })
    await process.write("1\n")
    const output = process.output()
    const events = warren.sessions.events()
    const first = await output.next()
    expect(first.value).toMatchObject({ text: "1\n" })
    expect((await events.next()).done).toBe(false)
    await system.killControl()
    const more = output.next()
    await system.startControl()
    await process.write("2\n")
    await process.write("3\n", { isLast: true })
    let text = "1\n"
    let next = await more
    for (; !next.done; next = await output.next()) if ("text" in next.value) text += next.value.text
    expect(text).toBe("1\n2\n3\n")
    expect(next.value).toMatchObject({ exitCode: 0 })
    const renamed = session.update({ name: "came-back" })
    for await (const { item } of events) if (item.session?.name === "came-back") break
    await renamed
  })
})
