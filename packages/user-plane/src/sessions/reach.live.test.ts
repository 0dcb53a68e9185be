import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { sessionCalls } from "@warren/protocol/user-plane/sessions.ts"
import { exec } from "@warren/drivers/init/exec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Engine } from "./engine.ts"
import { Home } from "./testing/home.ts"

const never = new AbortController().signal

describe("what a session reaches", () => {
  const home = new Home()
  let engine: Engine
  let server: Server
  let site = ""
  beforeAll(async () => {
    server = createServer((_, response) => response.end("a page of the host"))
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    site = `127.0.0.1:${(server.address() as AddressInfo).port}`
    engine = await home.open()
  })
  afterAll(async () => {
    await home[Symbol.asyncDispose]()
    await new Promise((done) => server.close(done))
  })

  const create = (wishes: object) => engine.sessions.create(sessionCalls["session.create"].in.parse(wishes), never)
  async function get(id: string, url: string): Promise<string> {
    using use = await engine.sessions.use(id, never)
    const env = { ...use.live.wayOut?.environment(), no_proxy: "", NO_PROXY: "" }
    const { stdout } = await exec(use.live.sandbox, {
      argv: ["curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url],
      env,
    })
    return stdout.toString()
  }

  test("is nothing, unless it was allowed; and the private network of the host never is", async () => {
    const { id } = await create({})
    expect(await get(id, "http://example.com/")).toBe("403")
    expect(await get(id, `http://${site}/`)).toBe("403")
    const denials = engine.sessions.live(id).wayOut?.denials(0) ?? []
    expect(denials.map(({ item }) => `${item.host} ${item.reason}`)).toEqual([
      "example.com not-listed",
      "127.0.0.1 plain-address",
    ])
    expect(engine.sessions.live(id).wayOut?.denials(denials[0]?.seq ?? 0)).toHaveLength(1)
    await engine.sessions.delete(id)
  })

  test("rules that mean nothing are refused, and change nothing", async () => {
    const { id } = await create({ network: { mode: "proxy", allow: ["example.com"] } })
    const network = { mode: "proxy", access: "list", allow: ["not a host!"] } as const
    await expect(
      engine.sessions.update({ id, network: { ...network, allow: [...network.allow] } }),
    ).rejects.toMatchObject({ code: "invalid" })
    expect(engine.sessions.get(id).network).toMatchObject({ allow: ["example.com"] })
    await expect(create({ name: "bad", network: { mode: "proxy", allow: ["**"] } })).rejects.toMatchObject({
      code: "invalid",
    })
    expect(() => engine.sessions.get("bad")).toThrow("there is no session")
    await expect(engine.sessions.update({ id, network: { mode: "host" } })).rejects.toMatchObject({
      code: "unsupported",
    })
    await engine.sessions.delete(id)
  })

  test("is the same after the runner was replaced", async () => {
    const { id } = await create({ network: { mode: "proxy", allow: ["example.com"] } })
    engine = await home.open()
    expect(await get(id, "http://other.example/")).toBe("403")
    expect(engine.sessions.live(id).wayOut?.denials(0).at(-1)?.item).toMatchObject({
      host: "other.example",
      reason: "not-listed",
    })
    // Allowed, and not resolvable here: refused for another reason than the list.
    await get(id, "http://example.com/")
    expect(engine.sessions.live(id).wayOut?.denials(0).at(-1)?.item.reason).not.toBe("not-listed")
    await engine.sessions.delete(id)
  })
})
