import { afterAll, describe, expect, test } from "vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { ApiSystem } from "../api/system.ts"
import { httpTransport, McpClient } from "./clients.ts"
import { textOf } from "./every-tool.ts"

const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

async function token(scopes?: string[], limits: object = {}): Promise<{ id: string; token: string }> {
  const body = JSON.stringify({ ...(scopes ? { scopes } : {}), limits })
  const made = (await (await system.fetch("/v1/tokens", { method: "POST", body })).json()) as {
    token: string
    about: { id: string }
  }
  return { id: made.about.id, token: made.token }
}

const greeting = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
}
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" }

function post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  return system.fetch("/mcp", { method: "POST", headers: { ...json, ...headers }, body: text })
}

describe("who may", () => {
  test("without a token, or with a wrong one, is told where to look", async () => {
    for (const authorization of ["", "Bearer wrn_wrong"]) {
      const refused = await post(greeting, { authorization })
      expect(refused.status).toBe(401)
      const challenge = refused.headers.get("www-authenticate") ?? ""
      const [, metadata = ""] = /^Bearer resource_metadata="(.*)"$/.exec(challenge) ?? []
      const told = await fetch(metadata.replace(/^http:\/\/[^/]+/, system.url))
      expect(await told.json()).toMatchObject({
        resource: expect.stringMatching(/\/mcp$/) as string,
        bearer_methods_supported: ["header"],
        scopes_supported: expect.arrayContaining(["exec", "files:read"]) as string[],
      })
    }
    const client = new Client({ name: "stranger", version: "1" })
    await expect(client.connect(httpTransport(system.url, "wrn_wrong"))).rejects.toThrow()
  })

  test("a token does what its scopes say", async () => {
    await using mcp = await McpClient.open(system, "http", (await token(["sessions:read"])).token)
    expect((await mcp.call("list_sessions", {})).isError ?? false).toBe(false)
    const refused = await mcp.call("create_session", { name: "no" })
    expect(refused).toMatchObject({ isError: true, structuredContent: { error: { code: "forbidden" } } })
    expect(textOf(refused)).toContain("sessions:write")
  })

  test("a token of some sessions sees those and makes no more than it may", async () => {
    await using all = await McpClient.open(system, "http")
    await all.call("create_session", { name: "other", network: { mode: "none" } })
    const { token: few } = await token(undefined, { namePrefix: "ci-", sessionsMax: 1 })
    await using mcp = await McpClient.open(system, "http", few)
    const refused = async (tool: string, args: object) =>
      (await mcp.call(tool, { ...args })).structuredContent.error.code as string
    expect(await refused("create_session", { name: "mine" })).toBe("forbidden")
    expect((await mcp.call("create_session", { network: { mode: "none" } })).structuredContent.session.name).toMatch(
      /^ci-/,
    )
    expect(await refused("create_session", { network: { mode: "none" } })).toBe("limit")
    const { sessions } = (await mcp.call("list_sessions", {})).structuredContent
    expect(sessions).toHaveLength(1)
    for (const tool of [
      "get_session",
      "delete_session",
      "fork_session",
      "list_processes",
      "list_shells",
      "get_agent",
    ]) {
      expect([tool, await refused(tool, { session: "other" })]).toEqual([tool, "not_found"])
    }
    expect(await refused("run_command", { session: "other", command: "id" })).toBe("not_found")
    expect(await refused("read_file", { session: "other", path: "/etc/passwd" })).toBe("not_found")
    expect(await refused("expose_port", { session: "other", port: 80 })).toBe("not_found")
    await expect(mcp.client.readResource({ uri: "warren://other" })).rejects.toMatchObject({ code: -32_002 })
    const { resources } = await mcp.client.listResources()
    expect(resources.some(({ uri }) => uri.includes("other"))).toBe(false)
    for (const session of [sessions[0].name, "other"]) await all.call("delete_session", { session })
  })

  test("a token that is revoked ends its conversation and what runs in it", async () => {
    const { id, token: short } = await token()
    await using all = await McpClient.open(system, "http")
    await all.call("create_session", { name: "revoked", network: { mode: "none" } })
    const mcp = await McpClient.open(system, "http", short)
    const running = mcp.call("run_in_shell", {
      session: "revoked",
      shell: (await mcp.call("open_shell", { session: "revoked" })).structuredContent.shell as string,
      command: "exec sleep 1000",
    })
    const watched = running.catch((thrown: unknown) => thrown)
    await system.fetch(`/v1/tokens/${id}`, { method: "DELETE" })
    expect(await watched).toBeDefined()
    await expect(mcp.call("list_sessions", {})).rejects.toThrow()
    await mcp.client.close()
    await all.call("delete_session", { session: "revoked" })
  })
})

describe("the wire", () => {
  test("a conversation is its owner's alone, and can be ended", async () => {
    const begun = await post(greeting)
    expect(begun.status).toBe(200)
    await begun.text()
    const id = begun.headers.get("mcp-session-id") ?? ""
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" }
    expect((await post(list)).status).toBe(400)
    expect((await post(list, { "mcp-session-id": "unknown" })).status).toBe(404)
    const other = `Bearer ${(await token()).token}`
    expect((await post(list, { "mcp-session-id": id, authorization: other })).status).toBe(404)
    const told = await post(list, { "mcp-session-id": id })
    expect([told.status, await told.text()]).toEqual([200, expect.stringContaining("create_session")])
    const ended = await system.fetch("/mcp", { method: "DELETE", headers: { "mcp-session-id": id } })
    expect(ended.status).toBe(200)
    expect((await post(list, { "mcp-session-id": id })).status).toBe(404)
  })

  test("nonsense is answered as what it is, and nothing ends of it", async () => {
    expect((await post("{")).status).toBe(400)
    expect((await post({ hello: "world" })).status).toBe(400)
    expect((await post(greeting, { accept: "text/html" })).status).toBe(406)
    expect((await post(greeting, { "content-type": "text/plain" })).status).toBe(415)
    expect((await post("x".repeat(5 * 1024 * 1024))).status).toBe(413)
    expect((await system.fetch("/mcp", { method: "PUT" })).status).toBe(404)
    const elsewhere = await post(greeting, { origin: "https://evil.example" })
    expect(elsewhere.status).toBe(403)
    expect(system.isRunning).toBe(true)
  })

  test("one token cannot have conversations without end", async () => {
    const { token: mine } = await token()
    const ids: string[] = []
    for (let n = 0; n < 34; n++) {
      const begun = await post(greeting, { authorization: `Bearer ${mine}` })
      await begun.text()
      ids.push(begun.headers.get("mcp-session-id") ?? "")
    }
    const ask = (id = "") =>
      post({ jsonrpc: "2.0", id: 2, method: "ping" }, { "mcp-session-id": id, authorization: `Bearer ${mine}` })
    expect([(await ask(ids[0])).status, (await ask(ids[33])).status]).toEqual([404, 200])
  })

  test("every message counts as a request", async () => {
    const { token: slow } = await token(undefined, { requestsPerMinute: 3 })
    const authorization = `Bearer ${slow}`
    const begun = await post(greeting, { authorization })
    await begun.text()
    const id = begun.headers.get("mcp-session-id") ?? ""
    const answers: Response[] = []
    for (let n = 0; n < 4; n++) {
      answers.push(await post({ jsonrpc: "2.0", id: n, method: "ping" }, { authorization, "mcp-session-id": id }))
    }
    expect(answers.map(({ status }) => status)).toContain(429)
    expect(Number(answers.at(-1)?.headers.get("retry-after"))).toBeGreaterThan(0)
  })

  test("what was asked is in the log of who asked, by its own name", async () => {
    await using mcp = await McpClient.open(system, "http")
    await mcp.call("create_session", { name: "noted", network: { mode: "none" } })
    await mcp.call("delete_session", { session: "noted" })
    const { items } = (await (await system.fetch("/v1/audit?limit=50")).json()) as { items: { action: string }[] }
    expect(items.map(({ action }) => action)).toEqual(expect.arrayContaining(["session.create", "session.delete"]))
  })
})

test("a control plane that is told to stop does not wait for its clients", async () => {
  // Longer than this test may take.
  const own = await ApiSystem.start({ WARREN_DRAIN_S: "600" })
  const client = await McpClient.open(own, "http")
  await client.call("list_sessions", {})
  await own[Symbol.asyncDispose]()
  expect(own.isRunning).toBe(false)
  await client.client.close()
})
