import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { routes } from "@warren/protocol/http/routes.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { dataCalls } from "@warren/protocol/user-plane.ts"
import { openUserPlane } from "./user-plane.ts"

const dist = resolve(import.meta.dirname, "../../../dist")
const root = realpathSync(mkdtempSync(join(tmpdir(), "wh-")))
const scope = new Scope()
let app: ReturnType<typeof routes>

beforeAll(async () => {
  const log = createLog(() => undefined)
  const program = (name: string): string => join(dist, name)
  const programs = { init: program("warren-init"), launch: program("warren-launch"), libraries: program("crun-lib") }
  const volume = { firstBytes: 2 ** 30 }
  const driver = scope.use(await openOciDriver({ root: join(root, "oci"), programs, log, volume }))
  const plane = scope.use(
    await openUserPlane({
      ...{ root, drivers: [driver], image: "host", sqlProgram: program("sql.js"), recipes: program("images") },
      supervisorProgram: program("supervisor.js"),
      upstreams: { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com" },
      ...{ env: {}, sessionsMax: 100, poolBytes: 0, poolLeast: 0, clock: systemClock, log },
    }),
  )
  app = routes({ contract: dataCalls, handlers: plane.handlers, log, caller: () => ({ name: "me" }) })
  const network = { mode: "none" }
  const made = await ask("POST", "/v1/sessions", { body: JSON.stringify({ name: "web", network }) })
  expect(await made.json()).toMatchObject({ state: "running" })
})

afterAll(async () => {
  await ask("DELETE", "/v1/sessions/web")
  await scope.close()
  rmSync(root, { recursive: true, force: true })
})

function ask(method: string, path: string, init: Omit<RequestInit, "method"> = {}): Promise<Response> {
  return Promise.resolve(app.request(path, { method, ...init }))
}

const exec = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
  ask("POST", "/v1/sessions/web/exec", { body: JSON.stringify(body), headers })

test("a command in a real sandbox is one answer", async () => {
  const run = await exec({ cmd: "cat; echo oops >&2; exit 3", stdin: "hello ü\n" })
  expect(await run.json()).toMatchObject({
    ...{ exitCode: 3, signal: null, reason: "exit", stdout: "hello ü\n", stderr: "oops\n", truncated: false },
    durationMs: expect.any(Number),
  })
})

test("a command in a real sandbox is events", async () => {
  const run = await exec({ argv: ["echo", "hi"] }, { accept: "text/event-stream" })
  const names = [...(await run.text()).matchAll(/^event: (\w+)$/gm)].map((match) => match[1])
  expect(names).toEqual(["started", "stdout", "exit", "end"])
})

test("a file goes in, and comes out whole and in parts", async () => {
  const bytes = new Uint8Array(300_000).map((_, at) => at % 251)
  const at = "/v1/sessions/web/files/content?path=/tmp/blob"
  expect(await (await ask("PUT", at, { body: bytes })).json()).toEqual({ bytes: bytes.length })
  expect(new Uint8Array(await (await ask("GET", at)).arrayBuffer())).toEqual(bytes)
  const part = await ask("GET", at, { headers: { range: "bytes=-5" } })
  expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 299995-299999/300000"])
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(bytes.slice(-5))
  expect((await ask("GET", at, { headers: { range: "bytes=300000-" } })).status).toBe(416)
})
