import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

/** Requests as Sandkasten's own clients make them: the same paths, headers, bodies and ways to read the answer. */
const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const base = `${system.url}/sandkasten`

interface Info {
  readonly id: string
  readonly status: string
  readonly cwd: string
  readonly acquire_source: string
  readonly workspace_id?: string
  readonly created_at: string
  readonly expires_at: string
}
interface Exec {
  readonly exit_code: number
  readonly cwd: string
  readonly output: string
  readonly truncated: boolean
  readonly duration_ms: number
}

/** Their TypeScript client sends this content type with everything, also where there is no body. */
function ask(path: string, init: RequestInit = {}, token = system.token): Promise<Response> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` }
  return fetch(base + path, { ...init, headers })
}

async function post<T>(path: string, body: object): Promise<T> {
  const answer = await ask(path, { method: "POST", body: JSON.stringify(body) })
  expect(answer.ok, await answer.clone().text()).toBe(true)
  return (await answer.json()) as T
}

async function refused(asked: Promise<Response>): Promise<[number, string]> {
  const answer = await asked
  const { error_code, message } = (await answer.json()) as { error_code: string; message: string }
  expect(message).not.toBe("")
  return [answer.status, error_code]
}

let id = ""
beforeAll(async () => {
  const made = await ask("/v1/sessions", {
    method: "POST",
    // As JSON.stringify leaves out what their client was not given.
    body: JSON.stringify({ image: undefined, ttl_seconds: 600, workspace_id: "shared-notes" }),
  })
  expect(made.status).toBe(201)
  const info = (await made.json()) as Info
  expect(info).toMatchObject({
    status: "running",
    cwd: "/workspace",
    acquire_source: "cold",
    workspace_id: "shared-notes",
  })
  const lifeMs = Date.parse(info.expires_at) - Date.parse(info.created_at)
  expect(lifeMs).toBeGreaterThanOrEqual(600_000)
  expect(lifeMs).toBeLessThan(610_000)
  id = info.id
})
afterAll(async () => {
  expect(await (await ask(`/v1/sessions/${id}`, { method: "DELETE" })).json()).toEqual({ ok: true })
})

describe("sessions", () => {
  test("are found, listed and measured", async () => {
    expect(await (await ask(`/v1/sessions/${id}`)).json()).toMatchObject({ id, status: "running" })
    const all = (await (await ask("/v1/sessions")).json()) as Info[]
    expect(all.map((info) => info.id)).toContain(id)
    expect(await (await ask(`/v1/sessions/${id}/stats`)).json()).toEqual({
      memory_bytes: expect.any(Number) as number,
      memory_limit: 512 * 1024 * 1024,
      cpu_usage_usec: expect.any(Number) as number,
    })
    expect(await (await fetch(`${base}/healthz`)).json()).toEqual({ status: "ok" })
  })

  test("are refused in Sandkasten's words", async () => {
    const create = (body: object): Promise<Response> =>
      ask("/v1/sessions", { method: "POST", body: JSON.stringify(body) })
    expect(await refused(ask("/v1/sessions/0123abcd-012"))).toEqual([404, "SESSION_NOT_FOUND"])
    expect(await refused(ask("/v1/sessions/0123abcd-012", { method: "DELETE" }))).toEqual([404, "SESSION_NOT_FOUND"])
    expect(await refused(create({ image: "no-such-image" }))).toEqual([400, "INVALID_IMAGE"])
    expect(await refused(create({ ttl_seconds: 86_401 }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(create({ workspace_id: "../etc" }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(ask("/v1/sessions", { method: "POST", body: "{" }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(ask("/v1/sessions", {}, "wrong"))).toEqual([401, "UNAUTHORIZED"])
    expect(await refused(ask("/v1/nowhere"))).toEqual([400, "INVALID_REQUEST"])
  })

  test("whose time has run out say so", async () => {
    const { id: short } = await post<Info>("/v1/sessions", { ttl_seconds: 1 })
    await expect
      .poll(async () => ((await (await ask(`/v1/sessions/${short}`)).json()) as Info).status, { timeout: 20_000 })
      .toBe("expired")
    const exec = ask(`/v1/sessions/${short}/exec`, { method: "POST", body: JSON.stringify({ cmd: "true" }) })
    expect(await refused(exec)).toEqual([410, "SESSION_EXPIRED"])
    await ask(`/v1/sessions/${short}`, { method: "DELETE" })
  })
})

describe("exec", () => {
  const exec = (cmd: string, timeout_ms?: number): Promise<Exec> =>
    post(`/v1/sessions/${id}/exec`, { cmd, timeout_ms, raw_output: undefined })

  test("is in one shell, which remembers", async () => {
    expect(await exec("cd /tmp && export WHO=me")).toMatchObject({ exit_code: 0, cwd: "/tmp", output: "" })
    const next = await exec("echo $WHO; pwd; exit_with() { return 3; }; exit_with")
    expect(next).toMatchObject({ exit_code: 3, cwd: "/tmp", output: "me\n/tmp\n", truncated: false })
    expect(Number.isInteger(next.duration_ms)).toBe(true)
    const together = await Promise.all([exec("echo $WHO"), exec("echo $WHO"), exec("echo $WHO")])
    expect(together.map(({ output }) => output)).toEqual(["me\n", "me\n", "me\n"])
  })

  test("that takes too long is ended, and the next works", async () => {
    const late = ask(`/v1/sessions/${id}/exec`, {
      method: "POST",
      body: JSON.stringify({ cmd: "sleep 1000", timeout_ms: 50 }),
    })
    expect(await refused(late)).toEqual([504, "COMMAND_TIMEOUT"])
    expect((await exec("echo still here")).output).toBe("still here\n")
  })

  test("needs a command of a size", async () => {
    const run = (body: object): Promise<Response> =>
      ask(`/v1/sessions/${id}/exec`, { method: "POST", body: JSON.stringify(body) })
    expect(await refused(run({}))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(run({ cmd: "x".repeat(1024 * 1024 + 1) }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(run({ cmd: "true", timeout_ms: 600_001 }))).toEqual([400, "INVALID_REQUEST"])
  })

  test("streams chunks while it runs, then how it ended", async () => {
    const events: [string, Record<string, unknown>][] = []
    const answer = await ask(`/v1/sessions/${id}/exec/stream`, {
      method: "POST",
      body: JSON.stringify({ cmd: "echo first; until [ -e /tmp/go ]; do sleep 0.01; done; echo second; false" }),
    })
    expect(answer.headers.get("content-type")).toContain("text/event-stream")
    for await (const event of theirEvents(answer)) {
      events.push(event)
      // Only a chunk that came while it ran can let it go on.
      if (event[1]["chunk"] === "first\n")
        await system.fetch(`/v1/sessions/${id}/files/content?path=/tmp/go`, { method: "PUT" })
    }
    const text = events.filter(([name]) => name === "chunk").map(([, { chunk }]) => chunk)
    expect(text.join("")).toBe("first\nsecond\n")
    expect(events[0]?.[1]["timestamp"]).toBeGreaterThan(1_600_000_000_000)
    expect(events.at(-1)).toEqual(["done", { exit_code: 1, cwd: "/tmp", duration_ms: expect.any(Number) as number }])
  })

  test("that fails while it streams says so as an event", async () => {
    const body = JSON.stringify({ cmd: "sleep 1000", timeout_ms: 50 })
    const answer = await ask(`/v1/sessions/${id}/exec/stream`, { method: "POST", body })
    const names: string[] = []
    for await (const [name] of theirEvents(answer)) names.push(name)
    expect(names).toEqual(["error"])
  })
})

/** Read line by line, as their clients do: the name of an event, then its data. */
async function* theirEvents(answer: Response): AsyncGenerator<[string, Record<string, unknown>]> {
  const decoder = new TextDecoder()
  let [buffer, name] = ["", ""]
  for await (const bytes of answer.body ?? []) {
    buffer += decoder.decode(bytes as Uint8Array, { stream: true })
    const lines = buffer.split("\n")
    buffer = lines.pop() ?? ""
    for (const line of lines) {
      if (line.startsWith("event:")) name = line.slice(6).trim()
      if (line.startsWith("data:")) yield [name, JSON.parse(line.slice(5).trim()) as Record<string, unknown>]
    }
  }
}

describe("files", () => {
  const read = async (path: string, max = ""): Promise<{ text: Buffer; truncated: boolean }> => {
    const answer = await ask(`/v1/sessions/${id}/fs/read?${new URLSearchParams({ path }).toString()}${max}`)
    const { content_base64, truncated } = (await answer.json()) as { content_base64: string; truncated: boolean }
    return { text: Buffer.from(content_base64, "base64"), truncated }
  }

  test("are written as text or base64, and read", async () => {
    expect(await post(`/v1/sessions/${id}/fs/write`, { path: "a b.txt", text: "hällo" })).toEqual({ ok: true })
    expect((await read("/workspace/a b.txt")).text.toString()).toBe("hällo")
    const bytes = Buffer.from([0, 255, 10, 13])
    await post(`/v1/sessions/${id}/fs/write`, { path: "/tmp/raw", content_base64: bytes.toString("base64") })
    expect((await read("/tmp/raw")).text).toEqual(bytes)
    expect(await read("/tmp/raw", "&max_bytes=2")).toEqual({ text: bytes.subarray(0, 2), truncated: true })
    expect(await read("/tmp/raw", "&max_bytes=4")).toEqual({ text: bytes, truncated: false })
  })

  test("are uploaded as they are", async () => {
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256))
    const form = new FormData()
    form.set("path", "up/here")
    form.append("files", new Blob([bytes]), "one.bin")
    form.append("files", new Blob(["two"]), "sub/two.txt")
    const answer = await system.fetch(`/sandkasten/v1/sessions/${id}/fs/upload`, { method: "POST", body: form })
    expect(await answer.json()).toEqual({
      ok: true,
      paths: ["/workspace/up/here/one.bin", "/workspace/up/here/two.txt"],
    })
    expect((await read("up/here/one.bin")).text.equals(bytes)).toBe(true)
  })

  test("that are not there, or not asked for well, are a bad request", async () => {
    const bad = (path: string): Promise<[number, string]> => refused(ask(`/v1/sessions/${id}/fs/${path}`))
    expect(await bad("read?path=/no/such")).toEqual([400, "INVALID_REQUEST"])
    expect(await bad("read")).toEqual([400, "INVALID_REQUEST"])
    expect(await bad("read?path=a&max_bytes=-1")).toEqual([400, "INVALID_REQUEST"])
    const write = (body: object): Promise<Response> =>
      ask(`/v1/sessions/${id}/fs/write`, { method: "POST", body: JSON.stringify(body) })
    expect(await refused(write({ path: "x" }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(write({ path: "x", text: "a", content_base64: "YQ==" }))).toEqual([400, "INVALID_REQUEST"])
    expect(await refused(write({ path: "x", content_base64: "***" }))).toEqual([400, "INVALID_REQUEST"])
  })
})

describe("workspaces", () => {
  test("are what their sessions see, and outlive them", async () => {
    await post(`/v1/sessions/${id}/fs/write`, { path: "from-session", text: "1" })
    await post("/v1/workspaces/shared-notes/fs/write", { path: "from-outside", text: "2" })
    const run = await post<Exec>(`/v1/sessions/${id}/exec`, { cmd: "cat /workspace/from-outside" })
    expect(run.output).toBe("2")
    const { entries } = (await (await ask("/v1/workspaces/shared-notes/fs?path=.")).json()) as {
      entries: { name: string; is_dir: boolean }[]
    }
    expect(entries).toContainEqual({ name: "from-session", is_dir: false })
    expect(entries).toContainEqual({ name: "up", is_dir: true })
    const answer = await ask("/v1/workspaces/shared-notes/fs/read?path=from-session")
    expect(await answer.json()).toEqual({ path: "from-session", content_base64: "MQ==", truncated: false })
  })

  test("are listed, deleted and refused", async () => {
    const other = await post<Info>("/v1/sessions", { workspace_id: "short-lived" })
    await ask(`/v1/sessions/${other.id}`, { method: "DELETE" })
    expect(await (await ask("/v1/workspaces")).json()).toEqual({
      workspaces: [{ id: "shared-notes" }, { id: "short-lived" }],
    })
    expect(await (await ask("/v1/workspaces/short-lived", { method: "DELETE" })).json()).toEqual({ ok: true })
    expect(await refused(ask("/v1/workspaces/short-lived", { method: "DELETE" }))).toEqual([404, "WORKSPACE_NOT_FOUND"])
    expect(await refused(ask("/v1/workspaces/shared-notes/fs/read?path=../../etc/passwd"))).toEqual([
      400,
      "INVALID_REQUEST",
    ])
  })
})
