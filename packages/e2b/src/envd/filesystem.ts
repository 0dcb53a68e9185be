import { posix } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import type { FileEntry } from "../plane.ts"
import { entryShapes } from "./entry.ts"
import { asThey } from "./rights.ts"
import type { Inside } from "./inside.ts"

export const Place = z.object({ path: z.string().max(4095).default("") })
export const ListDir = Place.extend({ depth: z.int().min(0).max(64).default(1) })
export const Move = z.object({ source: z.string().max(4095), destination: z.string().max(4095) })
export const Watch = Place.extend({
  recursive: z.boolean().default(false),
  includeEntry: z.boolean().default(false),
  allowNetworkMounts: z.boolean().default(false),
})

const entriesMax = 5_000

/** Files and folders of a sandbox. */
export const filesystem = {
  async stat(inside: Inside, { path }: z.output<typeof Place>): Promise<object> {
    return { entry: await shapeAt(inside, await inside.path(path)) }
  },

  async makeDir(inside: Inside, { path: given }: z.output<typeof Place>): Promise<object> {
    const path = await inside.path(given)
    const found = await look(inside, path, true)
    if (found?.type === "dir") throw new Fault("conflict", `directory already exists: ${path}`)
    if (found) throw new Fault("invalid", `path already exists but it is not a directory: ${path}`)
    await asThey(inside, (user) => inside.plane.call("file.mkdir", { session: inside.session, path, user }), path)
    return { entry: await shapeAt(inside, path) }
  },

  async move(inside: Inside, { source, destination }: z.output<typeof Move>): Promise<object> {
    const [path, to] = [await inside.path(source), await inside.path(destination)]
    if (!(await look(inside, path, false))) throw missing(path)
    const { plane, session } = inside
    const folder = posix.dirname(to)
    await asThey(inside, (user) => plane.call("file.mkdir", { session, path: folder, user }), folder)
    await asThey(inside, (user) => plane.call("file.move", { session, path, to, user, overwrite: true }))
    return { entry: await shapeAt(inside, to) }
  },

  async listDir(inside: Inside, { path: given, depth }: z.output<typeof ListDir>): Promise<object> {
    const path = await inside.path(given)
    const found = await look(inside, path, true)
    if (!found) throw missing(path)
    if (found.type !== "dir") throw new Fault("invalid", `path is not a directory: ${path}`)
    const asked = { session: inside.session, path, depth: Math.max(1, depth), limit: entriesMax, metadata: true }
    const { entries, truncated } = await asThey(inside, (user) => inside.plane.call("file.list", { ...asked, user }))
    if (truncated) throw new Fault("limit", `there are more than ${entriesMax} entries in ${path}`)
    return { entries: await entryShapes(inside, entries.toSorted(inOrder)) }
  },

  /** What is not there is gone already. */
  async remove(inside: Inside, { path: given }: z.output<typeof Place>): Promise<object> {
    const path = await inside.path(given)
    const asked = { session: inside.session, path, recursive: true }
    await asThey(inside, (user) => inside.plane.call("file.remove", { ...asked, user })).catch((thrown: unknown) => {
      if (!(thrown instanceof Fault) || thrown.code !== "not_found") throw thrown
    })
    return {}
  },

  async *watchDir(inside: Inside, asked: z.output<typeof Watch>): AsyncGenerator<object, void, void> {
    for await (const event of changes(inside, asked)) yield isReady(event) ? { start: {} } : { filesystem: event }
  },
}

const ready = {}
export const isReady = (event: object): boolean => event === ready

/** Every change from `ready` on. */
export async function* changes(inside: Inside, asked: z.output<typeof Watch>): AsyncGenerator<object, void, void> {
  const path = await inside.path(asked.path)
  const found = await look(inside, path, true)
  if (!found) throw missing(path)
  if (found.type !== "dir") throw new Fault("invalid", `path is not a directory: ${path}`)
  const watch = { session: inside.session, path, user: "root", recursive: asked.recursive, isAnnounced: true }
  for await (const { item } of inside.plane.feed("file.watch", watch)) {
    if (item.kind === "ready") yield ready
    else for (const event of eventsOf(item)) yield asked.includeEntry ? await withEntry(inside, path, event) : event
  }
}

interface Change {
  readonly kind: string
  readonly path: string
  readonly to?: string | undefined
}

/** What is renamed is gone under one name and there under another. */
function eventsOf({ kind, path, to }: Change): { name: string; type: string }[] {
  const event = { name: path, type: `EVENT_TYPE_${kind.toUpperCase()}` }
  return kind === "rename" && to !== undefined ? [event, { name: to, type: "EVENT_TYPE_CREATE" }] : [event]
}

async function withEntry(inside: Inside, folder: string, event: { name: string; type: string }): Promise<object> {
  if (event.type === "EVENT_TYPE_REMOVE" || event.type === "EVENT_TYPE_RENAME") return event
  const entry = await shapeAt(inside, posix.join(folder, event.name)).catch(() => undefined)
  return entry ? { ...event, entry } : event
}

async function look({ plane, session }: Inside, path: string, follow: boolean): Promise<FileEntry | undefined> {
  return plane.call("file.stat", { session, path, user: "root", follow, metadata: true }).catch((thrown: unknown) => {
    if (thrown instanceof Fault && thrown.code === "not_found") return undefined
    throw thrown
  })
}

async function shapeAt(inside: Inside, path: string): Promise<object> {
  const found = await look(inside, path, false)
  if (!found) throw missing(path)
  const [shape] = await entryShapes(inside, [found])
  return shape ?? {}
}

export function missing(path: string): Fault {
  return new Fault("not_found", `path not found: ${path}`)
}

/** Folder by folder, by name: each before what is in it. */
function inOrder(a: FileEntry, b: FileEntry): number {
  const [x, y] = [a.path.split("/"), b.path.split("/")]
  for (let at = 0; at < Math.min(x.length, y.length); at++) {
    const [one = "", other = ""] = [x[at], y[at]]
    if (one !== other) return one < other ? -1 : 1
  }
  return x.length - y.length
}
