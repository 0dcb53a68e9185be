import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { Readable } from "node:stream"
import type { Context as HonoContext } from "hono"
import { z } from "zod"
import { isSameText } from "../access-token.ts"
import type { Plane } from "../plane.ts"
import { bodyOf, filled, poured } from "../transfer.ts"
import type { ApiParts, On, Open } from "./door.ts"

type Entry = Awaited<ReturnType<typeof statOf>>
const kinds = { file: "file", folder: "directory", link: "symlink", other: "unknown" } as const
const keyChars = 20

/** A volume is a workspace, and its name is its id. */
export function volumeRoutes(on: On, open: Open, parts: ApiParts): void {
  const shown = (key: string, name: string): object => ({
    ...{ volumeID: name, name, token: parts.tokens.ofVolume(key, name) },
    ...(parts.domain === "" ? {} : { domain: parts.domain }),
  })
  on("POST /volumes", async ({ plane, key, json, c }) => {
    const { name } = await plane.call("workspace.create", { name: (await json(z.object({ name: z.string() }))).name })
    return c.json(shown(key, name), 201)
  })
  on("GET /volumes", async ({ plane, c }) => {
    const { items } = await plane.call("workspace.list", { limit: 200 })
    return c.json(items.map(({ name }) => ({ volumeID: name, name })))
  })
  on("GET /volumes/:id", async ({ plane, key, id, c }) => {
    const { name } = await plane.call("workspace.get", { name: id }).catch(wrongName)
    return c.json(shown(key, name))
  })
  on("DELETE /volumes/:id", async ({ plane, id, c }) => {
    await plane.call("workspace.get", { name: id }).catch(wrongName)
    await plane.call("workspace.delete", { name: id })
    return c.body(null, 204)
  })
  content(open, parts)
}

/** What cannot be a name is nobody's. */
function wrongName(thrown: unknown): never {
  if (thrown instanceof Fault && thrown.code === "invalid") throw new Fault("not_found", "there is no such volume")
  throw thrown
}

interface Place {
  readonly c: HonoContext
  readonly plane: Plane
  readonly name: string
  readonly path: string
}

function content(open: Open, parts: ApiParts): void {
  const at = (route: string, handle: (place: Place) => Promise<Response>): void =>
    open(route, async (c) => {
      const name = c.req.param("id") ?? ""
      const plane = await admitted(parts, c, name)
      return handle({ c, plane, name, path: posix.resolve("/", c.req.query("path") ?? "").slice(1) })
    })
  at("GET /volumecontent/:id/path", async ({ c, plane, name, path }) =>
    c.json(entryShape(await statOf(plane, name, path))),
  )
  at("PATCH /volumecontent/:id/path", async () => {
    throw new Fault("unsupported", "owners and rights of files in a volume are changed in a sandbox that has it")
  })
  at("DELETE /volumecontent/:id/path", async ({ c, plane, name, path }) => {
    const { isRemoved } = await plane.call("workspace.remove", { name, path, recursive: true })
    if (!isRemoved) throw new Fault("not_found", `path ${path} not found`)
    return c.body(null, 204)
  })
  at("POST /volumecontent/:id/dir", async ({ c, plane, name, path }) =>
    c.json(entryShape(await plane.call("workspace.mkdir", { name, path })), 201),
  )
  at("GET /volumecontent/:id/dir", async ({ c, plane, name, path }) => {
    const depth = Math.min(Math.max(1, Number(c.req.query("depth") ?? 1) || 1), 16)
    return c.json((await listed(plane, name, path, depth)).map(entryShape))
  })
  at("GET /volumecontent/:id/file", async ({ plane, name, path }) => {
    const { sizeBytes } = await statOf(plane, name, path)
    const bytes = await plane.stream("workspace.read", { name, path })
    const body = Readable.toWeb(Readable.from(poured(bytes), { objectMode: false })) as ReadableStream<Uint8Array>
    return new Response(body, {
      headers: { "content-type": "application/octet-stream", "content-length": String(sizeBytes) },
    })
  })
  at("PUT /volumecontent/:id/file", async ({ c, plane, name, path }) => {
    await filled(await plane.stream("workspace.write", { name, path }), bodyOf(c.req.raw))
    return c.json(entryShape(await statOf(plane, name, path)), 201)
  })
}

async function admitted(parts: ApiParts, c: HonoContext, name: string): Promise<Plane> {
  const token = (c.req.header("authorization") ?? "").replace(/^Bearer /i, "")
  const key = token.slice(0, keyChars)
  const plane = isSameText(token, parts.tokens.ofVolume(key, name)) ? await parts.within(c.req.raw, key) : undefined
  if (!plane) throw new Fault("unauthenticated", "the volume's token is wrong")
  return plane
}

function statOf(plane: Plane, name: string, path: string) {
  return plane.call("workspace.stat", { name, path })
}

async function listed(plane: Plane, name: string, path: string, depth: number): Promise<Entry[]> {
  const { items } = await plane.call("workspace.files", { name, path, limit: 200 })
  const found: Entry[] = []
  for (const entry of items) {
    found.push(entry)
    if (entry.kind === "folder" && depth > 1) found.push(...(await listed(plane, name, entry.path, depth - 1)))
  }
  return found
}

function entryShape({ path, name, kind, sizeBytes, modifiedAt, mode, target }: Entry): object {
  return {
    ...{ name, type: kinds[kind], path: `/${path}`, size: sizeBytes, mode: mode & 0o777, uid: 1000, gid: 1000 },
    ...{ atime: modifiedAt, mtime: modifiedAt, ctime: modifiedAt },
    ...(target === undefined ? {} : { target }),
  }
}
