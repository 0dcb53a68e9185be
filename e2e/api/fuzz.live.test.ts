import { readFileSync } from "node:fs"
import { faultCodes } from "@warren/base/fault.ts"
import { afterAll, expect, test } from "vitest"
import { Asker, type Answer } from "./asker.ts"
import { Chance } from "./chance.ts"
import { fuzzed, operationsOf, type FuzzedRequest, type Operation } from "./fuzzed-request.ts"
import { ApiSystem } from "./system.ts"
import { record } from "../security/results.ts"

/** Told again with the same seed, the same requests are made. */
const seed = Number(process.env["WARREN_FUZZ_SEED"] ?? Date.now() % 2 ** 31)
const requests = Number(process.env["WARREN_FUZZ_REQUESTS"] ?? 1_500)
const atOnce = 8
const failuresShown = 20
const rssMbMax = 600

const system = await ApiSystem.start({ WARREN_SESSIONS_MAX: "12" })
afterAll(() => system[Symbol.asyncDispose]())

/** Of the compatible doors, which are not in the document. */
const text = { type: "string" }
const doors: readonly Operation[] = [
  door("POST /sandkasten/v1/sessions", { image: text, ttl_seconds: { type: "number" }, workspace_id: text }),
  door("GET /sandkasten/v1/sessions/{id}"),
  door("GET /sandkasten/v1/sessions/{id}/stats"),
  door("POST /sandkasten/v1/sessions/{id}/exec", { cmd: text, timeout_ms: { type: "integer", maximum: 500 } }),
  door("POST /sandkasten/v1/sessions/{id}/exec/stream", { cmd: text, timeout_ms: { type: "integer", maximum: 500 } }),
  door("POST /sandkasten/v1/sessions/{id}/fs/write", { path: text, text, content_base64: text }),
  door("POST /sandkasten/v1/sessions/{id}/fs/upload", { path: text }),
  door("GET /sandkasten/v1/sessions/{id}/fs/read"),
  door("GET /sandkasten/v1/workspaces/{id}/fs"),
  door("POST /sandkasten/v1/workspaces/{id}/fs/write", { path: text, text }),
  door("POST /valet/session-status", { sandboxId: text }),
  door("POST /valet/create-session", { sessionId: text, doWsUrl: text, envVars: { type: "object" } }),
  door("POST /valet/delete-workspace", { sessionId: text }),
]

function door(route: string, properties?: Record<string, unknown>): Operation {
  const [method = "", path = ""] = route.split(" ")
  const inPath = path.includes("{id}") ? [{ name: "id", in: "path", required: true, schema: text }] : []
  const query = path.includes("/fs") && method === "GET" ? ["path", "max_bytes"] : []
  const inQuery = query.map((name) => ({ name, in: "query", required: false, schema: text }))
  const body = properties ? { type: "object", properties, required: Object.keys(properties) } : undefined
  return { method, path, parameters: [...inPath, ...inQuery], body }
}

/** What is wrong with an answer, if anything is. */
function wrongWith(request: FuzzedRequest, { status, body, type }: Answer): string | undefined {
  // Whoever is asked for what cannot be says so: only what is broken on our side is a 5xx, and nothing here is.
  if (status >= 500) return `status ${status}`
  // Nobody who asks for a WebSocket reads why there is none.
  if (status < 400 || request.method === "HEAD" || "upgrade" in request.headers) return undefined
  if (!type.includes("application/json")) return `an error that is ${type || "nothing"}`
  const told = JSON.parse(body) as { error?: unknown; error_code?: unknown }
  // What is turned away before it comes to a door is told in our own words.
  if (request.path.startsWith("/sandkasten") && typeof told.error_code === "string") return undefined
  if (request.path.startsWith("/valet") && typeof told.error === "string") return undefined
  const { code = "", requestId } = (told.error ?? {}) as { code?: string; requestId?: string }
  return code in faultCodes && typeof requestId === "string" ? undefined : "an untyped error"
}

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
}

function log(): string {
  return readFileSync(system.home.at("logs", "runner.log"), "utf8")
}

/** In megabytes, for who runs many. */
function memory(): Record<string, number> {
  return Object.fromEntries(Object.entries(system.pids).map(([name, pid]) => [name, Math.round(rssMb(pid))]))
}

test(`${requests} requests with everything in them are answered or refused (WARREN_FUZZ_SEED=${seed})`, async () => {
  const document = (await (await system.fetch("/v1/openapi.json")).json()) as Record<string, unknown>
  const operations = [...operationsOf(document), ...doors]
  const components = (document["components"] as { schemas: Record<string, unknown> }).schemas
  const chance = new Chance(seed)
  const { warren } = system
  const standing = (): ReturnType<typeof warren.sessions.getOrCreate> =>
    warren.sessions.getOrCreate("fuzz", { workspace: "fuzz", network: { mode: "none" } })
  const home = await standing()
  const known = (field: string): string | undefined => {
    if (field === "id" || field === "session" || field === "sandboxId") return chance.one([home.id, home.name])
    if (field === "path") return chance.one(["/workspace/a", "/tmp", "a", "/etc/hostname"])
    if (field === "name") return chance.one(["fuzz", "host"])
    return undefined
  }
  await using asker = new Asker(system.url, atOnce)
  const rssBefore = memory()
  const begunAt = performance.now()
  const failures: string[] = []
  const statuses = new Map<number, number>()
  let left = requests
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const request = safe(fuzzed(chance.one(operations), { chance, components, known }))
      const token = chance.is(0.04) ? chance.one(["", "wrong", "Bearer", "x".repeat(2_000)]) : system.token
      const answer = await asker.ask(request, token)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      const wrong = wrongWith(request, answer)
      if (wrong !== undefined)
        failures.push(`${wrong}: ${shown(request)} -> ${answer.status} ${answer.body.slice(0, 300)}`)
      // Somebody has deleted or stopped what the others are about.
      // (A connection that was kept for too long may be closed while it is used again: that is nobody's fault.)
      if (left % 50 === 0) await standing().catch(standing)
    }
  }
  const tell = (): void => console.log(`${left} requests to go`, failures.slice(0, failuresShown), memory())
  const told = setInterval(tell, 60_000)
  await Promise.all(Array.from({ length: atOnce }, worker))
    .catch((thrown: unknown) => {
      // Who has died has said why.
      throw new Error(`${system.said.slice(-4_000)}\n${log().slice(-2_000)}`, { cause: thrown })
    })
    .finally(() => clearInterval(told))
  const tookS = Math.round((performance.now() - begunAt) / 1000)
  console.log(`seed ${seed}:`, Object.fromEntries([...statuses].toSorted(([a], [b]) => a - b)))
  console.log(`${tookS} s, MB before`, rssBefore, "and after", memory())
  const [runnerMb, controlMb] = Object.values(system.pids).map((pid) => Math.round(rssMb(pid)))
  record("http-requests", { cases: requests, bad: failures.length, seed, seconds: tookS, runnerMb, controlMb })
  expect(failures.slice(0, failuresShown)).toEqual([])
  expect(system.isRunning).toBe(true)
  expect((await warren.health()).status).toBe("ok")
  expect(`${system.said}${log()}`.match(/^.*"event":"[a-z]+\.bug".*$/gm) ?? []).toEqual([])
  for (const pid of Object.values(system.pids)) expect(rssMb(pid)).toBeLessThan(rssMbMax)
}, 3_600_000)

/** Nothing that would change this machine: images are made of packages from elsewhere, and the host's own network is the host's. */
function safe(request: FuzzedRequest): FuzzedRequest {
  const { path, body } = request
  if (!path.startsWith("/v1/images/make") || typeof body !== "string") return request
  return { ...request, body: body.replaceAll(/base|agent|desktop/g, "none") }
}

function shown({ method, path, headers, body }: FuzzedRequest): string {
  const content = body === undefined ? "" : ` ${body.toString("latin1" as never).slice(0, 500)}`
  return `${method} ${path.slice(0, 300)} ${JSON.stringify(headers)}${content}`
}
