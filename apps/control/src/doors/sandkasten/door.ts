import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Hono, type Context as HonoContext } from "hono"
import { streamSSE } from "hono/streaming"
import type { ContentfulStatusCode } from "hono/utils/http-status"
import { Ask, type DoorParts } from "../ask.ts"
import { jsonBody, numberField, textField } from "../body.ts"
import { execAsked, execLimits, Shells } from "./exec.ts"
import { fileLimits, inSession, inWorkspace, readAnswer, readAsked, uploadAsked, writeAsked } from "./files.ts"
import { refusalOf } from "./refusal.ts"
import { isExpired, sessionInfo } from "./shapes.ts"

const ttlSMax = 86_400
/** Of sessions whose clients say nothing. */
const ttlS = 1_800
const listMax = 1_000
const execBytesMax = 2 * execLimits.cmdBytesMax

type Handle = (ask: Ask, c: HonoContext, id: string) => Promise<Response> | Response

/** Sandkasten's API, for clients that speak it: its paths, its shapes, its codes. */
export function sandkastenDoor(parts: DoorParts, log: Log): Hono {
  const door = new Hono()
  door.onError((thrown, c) => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      log("error", "sandkasten.bug", { path: c.req.path, message: messageOf(thrown), stack: thrown.stack })
    }
    const { status, body } = refusalOf(fault)
    return c.json(body, status as ContentfulStatusCode)
  })
  const on = (route: string, handle: Handle): void => {
    const [method = "", path = ""] = route.split(" ")
    door.on(method, path, async (c) => handle(await Ask.of(parts, c), c, c.req.param("id") ?? ""))
  }
  door.get("/healthz", (c) => c.json({ status: "ok" }))
  sessionRoutes(on)
  execRoutes(on)
  fileRoutes(on)
  workspaceRoutes(on)
  door.all("*", (c) => {
    throw new Fault("invalid", `there is no ${c.req.method} ${c.req.path}`)
  })
  return door
}

type On = (route: string, handle: Handle) => void

function sessionRoutes(on: On): void {
  on("POST /v1/sessions", async (ask, c) => {
    const fields = await jsonBody(c.req.raw, fileLimits.jsonBytesMax)
    const [image, workspace] = [textField(fields, "image"), textField(fields, "workspace_id")]
    const ttl = numberField(fields, "ttl_seconds", 0, ttlSMax) || ttlS
    const wishes = { ...(image ? { image } : {}), ...(workspace ? { workspace } : {}), ttlMs: Math.ceil(ttl) * 1000 }
    const session = await ask.call("session.create", wishes).catch((thrown: unknown) => {
      const isImage = image !== undefined && thrown instanceof Fault && thrown.code === "not_found"
      throw isImage ? new Fault("not_found", `invalid image: ${image}`, { subject: "image:", cause: thrown }) : thrown
    })
    return c.json(sessionInfo(session), 201)
  })
  on("GET /v1/sessions", async (ask, c) => {
    const found: object[] = []
    let cursor: { cursor?: string } = {}
    do {
      const page = await ask.call("session.list", { limit: 200, ...cursor })
      found.push(...page.items.map(sessionInfo))
      cursor = page.nextCursor === undefined ? {} : { cursor: page.nextCursor }
    } while (cursor.cursor !== undefined && found.length < listMax)
    return c.json(found.slice(0, listMax))
  })
  on("GET /v1/sessions/:id", async (ask, c, id) => c.json(sessionInfo(await ask.call("session.get", { id }))))
  on("DELETE /v1/sessions/:id", async (ask, c, id) => c.json(await ask.call("session.delete", { id })))
  on("GET /v1/sessions/:id/stats", async (ask, c, id) => {
    const { limits } = await alive(ask, id)
    const { memoryBytes, cpuUs } = await ask.call("session.stats", { id })
    return c.json({ memory_bytes: memoryBytes, memory_limit: limits.memoryBytes, cpu_usage_usec: cpuUs })
  })
}

/** The session, unless its time has run out. */
async function alive(ask: Ask, id: string) {
  const session = await ask.call("session.get", { id })
  if (isExpired(session)) throw new Fault("resync", `session expired: ${id}`)
  return session
}

function execRoutes(on: On): void {
  const shells = new Shells()
  on("POST /v1/sessions/:id/exec", async (ask, c, id) => {
    const asked = execAsked(await jsonBody(c.req.raw, execBytesMax))
    const session = await alive(ask, id)
    let output = ""
    let isCut = false
    const done = await shells.run(ask, session.id, asked, async (text) => {
      isCut ||= output.length + text.length > execLimits.outputBytesMax
      output = (output + text).slice(0, execLimits.outputBytesMax)
    })
    return c.json({ ...done, output, truncated: isCut || done.truncated })
  })
  on("POST /v1/sessions/:id/exec/stream", async (ask, c, id) => {
    const asked = execAsked(await jsonBody(c.req.raw, execBytesMax))
    const session = await alive(ask, id)
    return streamSSE(c, async (sse) => {
      const say = (event: string, data: object): Promise<void> => sse.writeSSE({ event, data: JSON.stringify(data) })
      try {
        const tell = (chunk: string): Promise<void> => say("chunk", { chunk, timestamp: Date.now() })
        const { truncated: _, ...done } = await shells.run(ask, session.id, asked, tell)
        await say("done", done)
      } catch (thrown) {
        await say("error", { error: Fault.from(thrown).message })
      }
    })
  })
}

function fileRoutes(on: On): void {
  on("POST /v1/sessions/:id/fs/write", async (ask, c, id) => {
    const { path, bytes } = await writeAsked(c.req.raw)
    const session = (await alive(ask, id)).id
    await ask.write("file.write", { session, path: inSession(path) }, bytes)
    return c.json({ ok: true })
  })
  on("POST /v1/sessions/:id/fs/upload", async (ask, c, id) => {
    const files = await uploadAsked(c.req.raw)
    const session = (await alive(ask, id)).id
    const paths = files.map(({ path }) => inSession(path))
    for (const [at, { bytes }] of files.entries())
      await ask.write("file.write", { session, path: paths[at] ?? "" }, bytes)
    return c.json({ ok: true, paths })
  })
  on("GET /v1/sessions/:id/fs/read", async (ask, c, id) => {
    const { path, bytesMax } = readAsked((name) => c.req.query(name))
    const session = (await alive(ask, id)).id
    // One more than asked for says whether there is more.
    const bytes = await ask.bytes("file.read", { session, path: inSession(path), limit: bytesMax + 1 })
    return c.json(readAnswer(path, bytes, bytesMax))
  })
}

function workspaceRoutes(on: On): void {
  on("GET /v1/workspaces", async (ask, c) => {
    const { items } = await ask.call("workspace.list", { limit: 200 })
    return c.json({ workspaces: items.map(({ name }) => ({ id: name })) })
  })
  on("DELETE /v1/workspaces/:id", async (ask, c, name) => {
    await ask.call("workspace.get", { name })
    await ask.call("workspace.delete", { name })
    return c.json({ ok: true })
  })
  on("GET /v1/workspaces/:id/fs", async (ask, c, name) => {
    const { items } = await ask.call("workspace.files", {
      name,
      path: inWorkspace(c.req.query("path") ?? ""),
      limit: 200,
    })
    return c.json({ entries: items.map((entry) => ({ name: entry.name, is_dir: entry.kind === "folder" })) })
  })
  on("GET /v1/workspaces/:id/fs/read", async (ask, c, name) => {
    const { path, bytesMax } = readAsked((field) => c.req.query(field))
    const bytes = await ask.bytes("workspace.read", { name, path: inWorkspace(path), limit: bytesMax + 1 })
    return c.json(readAnswer(path, bytes, bytesMax))
  })
  on("POST /v1/workspaces/:id/fs/write", async (ask, c, name) => {
    const { path, bytes } = await writeAsked(c.req.raw)
    await ask.write("workspace.write", { name, path: inWorkspace(path) }, bytes)
    return c.json({ ok: true })
  })
  on("POST /v1/workspaces/:id/fs/upload", async (ask, c, name) => {
    const files = await uploadAsked(c.req.raw)
    const paths = files.map(({ path }) => inWorkspace(path))
    for (const [at, { bytes }] of files.entries())
      await ask.write("workspace.write", { name, path: paths[at] ?? "" }, bytes)
    return c.json({ ok: true, paths })
  })
}
