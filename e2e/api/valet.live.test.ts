import { afterAll, describe, expect, test } from "vitest"
import { ApiSystem } from "./system.ts"

/** Requests as valet's worker makes them. */
const system = await ApiSystem.start()
afterAll(() => system[Symbol.asyncDispose]())

async function post(endpoint: string, body: object, token = system.token): Promise<[number, Record<string, unknown>]> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` }
  const init = { method: "POST", headers, body: JSON.stringify(body) }
  const answer = await fetch(`${system.url}/valet/${endpoint}`, init)
  return [answer.status, (await answer.json()) as Record<string, unknown>]
}

const sessionId = "orchestrator:user-7:3f1c9a52-rotation"
const request = {
  sessionId,
  userId: "user-7",
  workspace: "acme/website",
  imageType: "base",
  doWsUrl: "wss://hub.example/ws",
  runnerToken: "runner-token",
  jwtSecret: "jwt-secret",
  idleTimeoutSeconds: 900,
  sandboxCpuCores: 0.5,
  sandboxMemoryMib: 256,
  envVars: { REPO_URL: "https://github.com/acme/website", RUNNER_TOKEN: "not this", EMPTY: "" },
  personaFiles: [{ filename: "SOUL.md", content: "be kind" }],
}

describe("a session of valet's", () => {
  test("is made, sleeps as a snapshot, comes back elsewhere with its files, and goes", async () => {
    const [status, made] = await post("create-session", request)
    expect(status).toBe(200)
    const id = String(made["sandboxId"])
    const at = `http://localhost:${system.port}/s/${id}`
    expect(made["tunnelUrls"]).toEqual({
      opencode: `${at}/t/4096`,
      gateway: `${at}/t/9000`,
      vscode: `${at}/vscode`,
      vnc: `${at}/vnc`,
      ttyd: `${at}/ttyd`,
    })
    const session = await system.warren.sessions.get(id)
    expect(session.info).toMatchObject({
      labels: { valet: sessionId },
      workspace: "workspace-orchestrator-user-7",
      limits: { cpus: 0.5, memoryBytes: 256 * 1024 * 1024 },
      idle: { afterMs: 900_000, action: "hibernate" },
    })
    const seen = await session.exec(
      "echo $DO_WS_URL $RUNNER_TOKEN $SESSION_ID $JWT_SECRET $REPO_URL; echo $PERSONA_FILES_JSON; env",
    )
    expect(seen.stdout).toContain(
      `wss://hub.example/ws runner-token ${sessionId} jwt-secret https://github.com/acme/website`,
    )
    expect(seen.stdout).toContain(JSON.stringify(request.personaFiles))
    expect(seen.stdout).not.toContain("EMPTY=")
    expect(await post("session-status", { sandboxId: id })).toEqual([200, { sandbox_id: id, status: "running" }])

    await session.exec("echo outside > /home/user/kept; echo inside > /workspace/kept")
    const [, slept] = await post("hibernate-session", { sandboxId: id })
    expect(slept["snapshotImageId"]).toMatch(/^snp_/)
    expect(await post("session-status", { sandboxId: id })).toEqual([200, { sandbox_id: id, status: "terminated" }])
    const [again, refusal] = await post("hibernate-session", { sandboxId: id })
    expect([again, refusal["error"]]).toEqual([409, "sandbox_already_finished"])

    const rotated = { ...request, sessionId: "orchestrator:user-7:another", ...slept }
    const [, restored] = await post("restore-session", rotated)
    const second = await system.warren.sessions.get(String(restored["sandboxId"]))
    expect(second.id).not.toBe(id)
    expect((await second.exec("cat /home/user/kept /workspace/kept; echo $SESSION_ID")).stdout).toBe(
      "outside\ninside\norchestrator:user-7:another\n",
    )
    for (let turn = 0; turn < 2; turn++) {
      expect(await post("terminate-session", { sandboxId: second.id })).toEqual([200, { success: true }])
    }
    expect(await post("delete-workspace", { sessionId })).toEqual([200, { success: true, deleted: true }])
    expect(await post("delete-workspace", { sessionId })).toEqual([200, { success: true, deleted: false }])
  })

  test("runs what the image has for it to run", async () => {
    const [, made] = await post("create-session", { ...request, sessionId: "plain" })
    const session = await system.warren.sessions.get(String(made["sandboxId"]))
    const [first] = await session.processes()
    expect(first?.argv.join(" ")).toContain("/start.sh")
    await session.delete()
  })
})

describe("what is asked wrongly", () => {
  test("is refused with what is missing, and nothing is left", async () => {
    expect((await post("create-session", { ...request, jwtSecret: undefined }))[0]).toBe(400)
    expect((await post("create-session", { ...request, imageType: "no-such-image" }))[0]).toBe(404)
    expect((await post("create-session", { ...request, sandboxMemoryMib: "lots" }))[0]).toBe(400)
    expect((await post("restore-session", { ...request, snapshotImageId: "snp_none" }))[0]).toBe(404)
    expect((await post("create-session", request, "wrong"))[0]).toBe(401)
    expect((await post("nowhere", {}))[0]).toBe(404)
    const left: string[] = []
    for await (const { id } of system.warren.sessions.list({ state: "running" })) left.push(id)
    expect(left).toEqual([])
  })
})
