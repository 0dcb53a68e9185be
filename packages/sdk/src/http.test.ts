import { Fault } from "@warren/base/fault.ts"
import { describe, expect, test } from "vitest"
import { Http } from "./http.ts"
import { answer, hangUp, ScriptedServer } from "./testing/scripted-server.ts"
import { Warren } from "./warren.ts"

const busy = answer(503, { error: { code: "unavailable", message: "your runner is not running", requestId: "req_1" } })
const session = { id: "ses_0123456789abcdefghjk", name: "quick-fox", state: "running" }

async function faultOf(work: Promise<unknown>): Promise<Fault> {
  const thrown: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (thrown instanceof Fault) return thrown
  throw new Error(`not a fault: ${String(thrown)}`)
}

describe("trying again", () => {
  test("what only reads is asked again when nobody answers or nobody can", async () => {
    await using server = await ScriptedServer.start(hangUp, busy, answer(200, session))
    const warren = new Warren({ url: server.url, token: "t" })
    expect((await warren.sessions.get("quick-fox")).id).toBe(session.id)
    expect(server.heard.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array(3).fill("GET /v1/sessions/quick-fox"),
    )
    expect(server.heard[0]?.headers.authorization).toBe("Bearer t")
  })

  test("what makes something is asked again with the same key, and the next one has another", async () => {
    await using server = await ScriptedServer.start(hangUp, answer(201, session))
    const warren = new Warren({ url: server.url, token: "t" })
    const made = await warren.sessions.create({ name: "quick-fox", keep: true })
    await warren.sessions.create({ keep: true })
    const keys = server.heard.map(({ headers }) => headers["idempotency-key"])
    expect(made.name).toBe("quick-fox")
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
    expect(keys[1]).toBe(keys[0])
    expect(keys[2]).not.toBe(keys[0])
    expect(server.heard[0]?.body).toBe('{"name":"quick-fox"}')
  })

  test("what changes something is asked once", async () => {
    await using server = await ScriptedServer.start(answer(200, session), busy)
    const found = await new Warren({ url: server.url, token: "t" }).sessions.get("quick-fox")
    expect((await faultOf(found.pause())).code).toBe("unavailable")
    expect(server.heard).toHaveLength(2)
  })

  test("whoever is told to wait waits and asks again, whatever it was: it was not done", async () => {
    const limit = { error: { code: "limit", message: "more than 10 requests in a minute" } }
    await using server = await ScriptedServer.start(
      answer(200, session),
      answer(429, limit, { "retry-after": "0" }),
      answer(200, { ...session, state: "paused" }),
    )
    const found = await new Warren({ url: server.url, token: "t" }).sessions.get("quick-fox")
    expect((await found.pause()).state).toBe("paused")
  })

  test("not for who has a patience of their own", async () => {
    await using server = await ScriptedServer.start(busy, answer(200, session))
    const http = new Http({ url: server.url, token: "t", fetch, triesMax: 1 })
    const fault = await faultOf(http.call("GET /v1/sessions/{id}", { id: "quick-fox" }))
    expect([fault.code, fault.requestId, server.heard.length]).toEqual(["unavailable", "req_1", 1])
  })

  test("not for ever, and not against the caller's will", async () => {
    await using server = await ScriptedServer.start(busy)
    const warren = new Warren({ url: server.url, token: "t" })
    expect((await faultOf(warren.health())).code).toBe("unavailable")
    expect(server.heard).toHaveLength(5)
    const reason = new Error("enough")
    await expect(warren.health({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})

describe("faults", () => {
  test("have their code, message, hint and the id of the request", async () => {
    const error = { code: "not_found", message: "there is no session x", hint: "look at the list", requestId: "req_7" }
    await using server = await ScriptedServer.start(answer(404, { error }))
    const fault = await faultOf(new Warren({ url: server.url, token: "t" }).sessions.get("x"))
    expect({ ...fault.toData(), requestId: fault.requestId }).toEqual(error)
  })

  test("of what is between us and Warren go by the status", async () => {
    await using server = await ScriptedServer.start(
      answer(403, "<h1>no</h1>", { "content-type": "text/html", "x-request-id": "req_8" }),
    )
    const fault = await faultOf(new Warren({ url: server.url, token: "t" }).health())
    expect(fault).toMatchObject({ code: "forbidden", message: "Warren answered 403", requestId: "req_8" })
  })

  test("say where Warren was looked for", async () => {
    const fetch = (): Promise<Response> => Promise.reject(new TypeError("fetch failed"))
    const fault = await faultOf(new Warren({ url: "http://127.0.0.1:9/", token: "t", fetch }).sessions.create())
    expect(fault).toMatchObject({ code: "unavailable", message: "Warren does not answer at http://127.0.0.1:9" })
  })
})

test("lists are read page by page, only as far as somebody reads", async () => {
  await using server = await ScriptedServer.start(
    answer(200, { items: [{ id: "a" }, { id: "b" }], nextCursor: "c 1" }),
    answer(200, { items: [{ id: "c" }] }),
  )
  const { sessions } = new Warren({ url: server.url, token: "t" })
  const ids: string[] = []
  for await (const { id } of sessions.list({ state: ["running", "paused"], limit: 2 })) ids.push(id)
  expect(ids).toEqual(["a", "b", "c"])
  expect(server.heard.map(({ path }) => path)).toEqual([
    "/v1/sessions?state=running&state=paused&limit=2",
    "/v1/sessions?state=running&state=paused&limit=2&cursor=c+1",
  ])
  for await (const _ of sessions.list()) break
  expect(server.heard).toHaveLength(3)
})
