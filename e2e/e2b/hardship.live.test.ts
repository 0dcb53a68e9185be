import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Sandbox } from "e2b"
import { e2b } from "./compute-sdk.ts"
import { E2bSystem, keyOf } from "./system.ts"

const system = await E2bSystem.start()
afterAll(() => system[Symbol.asyncDispose]())
const { options, api } = system

describe("when things go wrong", () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await Sandbox.create("base", { ...options, timeoutMs: 600_000 })
  })
  afterAll(() => sandbox.kill())

  test("a control plane that is killed forgets no sandbox and no token of one", async () => {
    await sandbox.files.write("note", "kept")
    const running = await sandbox.commands.run("read x; echo heard $x", { background: true, stdin: true })
    const cut = running.wait().catch((thrown: Error) => thrown.message)
    await api.killControl()
    expect(await cut).toMatch(/terminated|fetch failed|socket/i)
    await api.startControl()
    expect(await sandbox.files.read("note")).toBe("kept")
    const again = await sandbox.commands.connect(running.pid)
    await again.sendStdin("after\n")
    expect((await again.wait()).stdout).toBe("heard after\n")
    expect((await Sandbox.list(options).nextItems()).map(({ sandboxId }) => sandboxId)).toContain(sandbox.sandboxId)
  })

  test("nor does a runner", async () => {
    await api.restartRunner()
    expect(await sandbox.files.read("note")).toBe("kept")
    expect((await sandbox.commands.run("echo there")).stdout).toBe("there\n")
  })

  test("a key that is revoked opens nothing any more, nor do the sandboxes that were made with it", async () => {
    const apiKey = await keyOf(api, { label: "short-lived" })
    const made = await Sandbox.create("base", { ...options, apiKey })
    expect((await made.commands.run("echo in")).stdout).toBe("in\n")
    const { items } = (await (await api.fetch("/v1/tokens")).json()) as { items: { id: string; label: string }[] }
    const id = items.find(({ label }) => label === "short-lived")?.id
    expect((await api.fetch(`/v1/tokens/${id}`, { method: "DELETE" })).status).toBe(200)
    await expect(Sandbox.list({ ...options, apiKey }).nextItems()).rejects.toThrow("Unauthorized")
    await expect(made.commands.run("echo in")).rejects.toThrow()
    expect(await made.isRunning()).toBe(false)
    expect(await Sandbox.kill(made.sandboxId, options)).toBe(true)
  })

  test("a sandbox cannot be taken for another's by its id", async () => {
    const [session, key] = [sandbox.sandboxId.slice(0, 20), sandbox.sandboxId.slice(20)]
    for (const id of [
      `${session}${"0".repeat(20)}`,
      `${"0".repeat(20)}${key}`,
      session,
      key,
      `${sandbox.sandboxId}0`,
      "..",
      "",
    ]) {
      const headers = { "e2b-sandbox-id": id, "e2b-sandbox-port": "49983" }
      const { status } = await fetch(`${options.sandboxUrl}/health`, { headers })
      expect([id, status]).toEqual([id, 502])
    }
    const plain = await (
      await api.fetch("/v1/sessions", { method: "POST", body: "{}", headers: { "content-type": "application/json" } })
    ).json()
    const { id } = plain as { id: string }
    const foreign = { "e2b-sandbox-id": `${id.slice(4)}${key}`, "e2b-sandbox-port": "49983" }
    expect((await fetch(`${options.sandboxUrl}/health`, { headers: foreign })).status).toBe(502)
    await api.fetch(`/v1/sessions/${id}`, { method: "DELETE" })
  })

  test("nonsense is refused, and nothing breaks", async () => {
    const token = (sandbox as unknown as { envdAccessToken: string }).envdAccessToken
    const inside = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "49983", "x-access-token": token }
    const rpc = [
      "process.Process/Start",
      "process.Process/Connect",
      "process.Process/SendInput",
      "filesystem.Filesystem/ListDir",
    ]
    const paths = [
      ...rpc.map((name) => `/${name}`),
      "/filesystem.Filesystem/WatchDir",
      "/no.Such/Thing",
      "/init",
      "/files?path=x",
    ]
    const bodies = [
      "",
      "{",
      "[]",
      "null",
      '{"process":5}',
      '{"path":7}',
      "\0\0\0\0\x01{",
      randomBytes(300).toString("latin1"),
    ]
    for (const path of paths) {
      for (const body of bodies) {
        for (const type of ["application/json", "application/connect+json"]) {
          const answer = await fetch(options.sandboxUrl + path, {
            method: "POST",
            headers: { ...inside, "content-type": type },
            body,
          })
          // Connect's own specification has 501 for what is not there; everything else of ours is no 5xx.
          expect([path, body, answer.status >= 500 && answer.status !== 501]).toEqual([path, body, false])
          await answer.arrayBuffer()
        }
      }
    }
    const key = { "x-api-key": options.apiKey, "content-type": "application/json" }
    for (const path of [
      "/sandboxes",
      "/v2/sandboxes",
      "/v3/templates",
      "/volumes",
      "/templates/tags",
      `/sandboxes/${sandbox.sandboxId}/timeout`,
      "/nowhere",
    ]) {
      for (const body of ["", "{", "[]", "7", '{"templateID":5}', '{"name":"../../etc"}', '{"count":-1}']) {
        const answer = await fetch(options.apiUrl + path, { method: "POST", headers: key, body })
        const { code, message } = (await answer.json()) as { code: number; message: string }
        expect([path, body, code]).toEqual([path, body, answer.status])
        expect(answer.status >= 400 && answer.status < 500, `${path} ${body} ${message}`).toBe(true)
      }
    }
    expect((await sandbox.commands.run("echo alive")).stdout).toBe("alive\n")
    expect(system.api.said).not.toContain("e2b.bug")
  })

  test("ComputeSDK's adapter works as it is published", async () => {
    const before = { ...process.env }
    Object.assign(process.env, {
      E2B_API_KEY: options.apiKey,
      E2B_API_URL: options.apiUrl,
      E2B_SANDBOX_URL: options.sandboxUrl,
    })
    try {
      const compute = e2b({})
      const made = await compute.sandbox.create()
      const { exitCode, stdout } = await made.runCommand("node -v")
      expect([exitCode, stdout.startsWith("v")]).toEqual([0, true])
      await made.destroy()
    } finally {
      for (const name of ["E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"]) delete process.env[name]
      Object.assign(process.env, before)
    }
  })
})
