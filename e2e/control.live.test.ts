import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { controlSocketOf } from "@warren/protocol/places.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { CliProgram } from "../apps/cli/src/testing/cli-program.ts"
import { dist } from "./runner/home.ts"
import { Warren } from "./warren.ts"

let warren: Warren
beforeAll(async () => {
  warren = await Warren.start()
}, 300_000)
afterAll(() => warren[Symbol.asyncDispose](), 120_000)

interface Asked {
  readonly token?: string
  readonly cookie?: string
  readonly body?: object
  readonly method?: string
}

async function ask(path: string, { token, cookie, body, method }: Asked) {
  const origin = `http://localhost:${warren.port}`
  const response = await fetch(`${origin}${path}`, {
    method: method ?? (body ? "POST" : "GET"),
    headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...(cookie ? { cookie, origin } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const cookies = response.headers.getSetCookie().map((one) => one.split(";")[0] ?? "")
  return { status: response.status, body: (await response.json()) as any, cookies } // oxlint-disable-line typescript/no-explicit-any -- as it came
}

describe("a Warren, its control plane and its runner", () => {
  test("what goes through the control plane is in the user's own access log, refused or not", async () => {
    const token = await warren.token()
    const made = await ask("/v1/sessions", { token, body: { name: "seen" } })
    expect(made.body).toMatchObject({ name: "seen", state: "running" })
    const ran = await ask("/v1/sessions/seen/exec", { token, body: { argv: ["sh", "-c", "echo $((6*7))"] } })
    expect(ran.body).toMatchObject({ exitCode: 0, stdout: "42\n" })
    expect((await ask("/v1/sessions/never-was", { token })).status).toBe(404)
    const { entries } = (await ask("/v1/access?limit=1000", { token })).body
    const lines = entries.map((one: { call: string; result: string }) => `${one.call} ${one.result}`)
    for (const line of ["session.create ok", "process.exec opened", "process.exec ok", "session.get not_found"]) {
      expect(lines).toContain(line)
    }
    const kept = await readFile(join(warren.home, "runner", "logs", "access.log"), "utf8")
    expect(kept).not.toContain("6*7")
  })

  test("an agent is talked with from elsewhere, by whoever has a token", async () => {
    const token = await warren.token()
    const { id } = (await ask("/v1/sessions", { token, body: { network: { mode: "none" } } })).body
    const started = await ask(`/v1/sessions/${id}/agent`, { token, body: { spec: { adapter: "scripted" } } })
    expect(started.status).toBeLessThan(300)
    const cli = CliProgram.at(join(dist, "cli.js")).with({ WARREN_HOME: "/nowhere", WARREN_TOKEN: token })
    const url = `http://127.0.0.1:${warren.port}`
    const { code, stdout, stderr } = await cli.run(["attach", id, "--url", url], "Who is far away?\n")
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stdout).toContain("You said: Who is far away?")
    const stranger = await cli.with({ WARREN_TOKEN: "wrn_none" }).run(["attach", id, "--url", url], "hello\n")
    expect([stranger.code, stranger.stdout]).toEqual([expect.any(Number), ""])
    expect(stranger.code).not.toBe(0)
    await ask(`/v1/sessions/${id}`, { token, method: "DELETE" })
  })

  test("whoever only connects to the control plane's socket gets nothing, and is noted", async () => {
    const client = new RpcClient(await connectUnix(controlSocketOf(warren.home)), userPlane, "nosy")
    await expect(client.call("session.list", {})).rejects.toMatchObject({ code: "forbidden" })
    await client[Symbol.asyncDispose]()
    const { entries } = (await ask("/v1/access", { token: await warren.token() })).body
    expect(entries).toContainEqual(
      expect.objectContaining({ call: "session.list", result: "forbidden", reason: "a signed statement is missing" }),
    )
  })

  test("a token that sees only some sessions, against the real ones", async () => {
    const owner = await warren.token()
    const limits = { namePrefix: "ci-", sessionsMax: 1 }
    const scopes = ["sessions:read", "sessions:write", "exec", "files:read"]
    const { token } = (await ask("/v1/tokens", { token: owner, body: { scopes, limits } })).body
    expect((await ask("/v1/sessions/seen", { token })).status).toBe(404)
    const made = await ask("/v1/sessions", { token, body: {} })
    expect(made.body.name).toMatch(/^ci-/)
    expect((await ask("/v1/sessions", { token, body: {} })).status).toBe(429)
    expect((await ask("/v1/sessions", { token })).body.items.map(({ name }: { name: string }) => name)).toEqual([
      made.body.name,
    ])
    expect((await ask("/v1/sessions/seen/exec", { token, body: { argv: ["true"] } })).status).toBe(404)
    expect((await ask("/v1/sessions/seen/files?path=/", { token })).status).toBe(404)
    expect((await ask(`/v1/sessions/${made.body.id}/exec`, { token, body: { argv: ["true"] } })).body.exitCode).toBe(0)
  })

  test("the link printed at the first start lets one browser in", async () => {
    const code = /\/join#([\w-]{43})/.exec(warren.said)?.[1]
    const body = { code, password: "something long enough" }
    const came = await ask("/v1/invites/redeem", { body })
    expect(came.status).toBe(200)
    expect((await ask("/v1/invites/redeem", { body })).status).toBe(401)
    const cookie = came.cookies[0] ?? ""
    expect((await ask("/v1/account", { cookie })).body.user.role).toBe("admin")
    const { token } = (await ask("/v1/sessions/seen/gateway-token", { cookie, body: {} })).body
    expect(token.split(".")).toHaveLength(3)
    expect((await ask("/v1/audit/verify", { cookie })).body.isWhole).toBe(true)
  })
})
