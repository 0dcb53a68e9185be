import { Fault } from "@warren/base/fault.ts"
import { isId } from "@warren/base/id.ts"
import { z } from "zod"
import type { Plane, Snapshot } from "../plane.ts"
import { Recipe } from "../templates/build.ts"
import { allSnapshots, sourceOf } from "../templates/sources.ts"
import { snapshotName, templateName, templateOf, type TemplateName } from "../templates/template-name.ts"
import { isSent, keepSent } from "../templates/uploads.ts"
import type { ApiParts, On, Open } from "./door.ts"
import { pageOf } from "./list.ts"

const mib = 1024 * 1024
const Requested = z.object({
  name: z.string().min(1).max(128),
  tags: z.array(z.string()).max(32).nullish(),
  cpuCount: z.number().min(1).max(1024).optional(),
  memoryMB: z
    .number()
    .min(64)
    .max(1024 * 1024)
    .optional(),
})

export function templateRoutes(on: On, open: Open, parts: ApiParts): void {
  const { builds } = parts
  on("POST /v3/templates", async ({ key, json, c }) => {
    const { name: given, tags, cpuCount = 2, memoryMB = 512 } = await json(Requested)
    const first = templateName(given)
    const names = [first, ...(tags ?? []).map((tag) => templateName(`${first.name}:${tag}`))]
    const limits = { cpus: cpuCount, memoryBytes: Math.floor(memoryMB) * mib }
    const made = builds.add({ key, template: first.name, names: unique(names), limits })
    const about = {
      names: made.names.map(({ name }) => name),
      aliases: [first.name],
      tags: made.names.map(({ tag }) => tag),
    }
    return c.json({ templateID: first.name, buildID: made.id, public: false, ...about }, 202)
  })
  on("GET /templates/:id/files/:hash", async ({ plane, key, c }) => {
    const hash = c.req.param("hash") ?? ""
    if (await isSent(plane, hash)) return c.json({ present: true }, 201)
    const path = c.req.path.replace(/\/templates\/.*$/, `/uploads/${key}/${hash}/${parts.tokens.ofUpload(key, hash)}`)
    return c.json({ present: false, url: new URL(path, c.req.url).href }, 201)
  })
  open("PUT /uploads/:key/:hash/:token", async (c) => {
    const [key = "", hash = "", token = ""] = ["key", "hash", "token"].map((name) => c.req.param(name))
    if (!parts.tokens.isUpload(token, key, hash)) throw new Fault("unauthenticated", "this address is not one of ours")
    const plane = await parts.within(c.req.raw, key)
    if (!plane) throw new Fault("unauthenticated", "the key it was made with counts no more")
    await keepSent(plane, hash, c.req.raw)
    return c.body(null, 200)
  })
  on("POST /v2/templates/:id/builds/:build", async ({ plane, key, json, c }) => {
    const recipe = await json(Recipe)
    builds.start(builds.get(key, c.req.param("build") ?? ""), recipe, plane)
    // Said, because some clients would read what is not there.
    return c.body(null, 202, { "content-length": "0" })
  })
  on("GET /templates/:id/builds/:build/status", async ({ key, c }) => {
    const made = builds.get(key, c.req.param("build") ?? "")
    const logEntries = builds.page(made, Number(c.req.query("logsOffset") ?? 0) || 0)
    const { id, template, status, reason } = made
    const about = {
      buildID: id,
      templateID: template,
      status,
      logs: logEntries.map(({ message }) => message),
      logEntries,
    }
    return c.json({ ...about, ...(reason ? { reason } : {}) })
  })
  names(on)
  snapshots(on, parts)
}

/** Templates that are there, and their tags. */
function names(on: On): void {
  on("GET /templates/aliases/:alias", async ({ plane, c }) => {
    const alias = decodeURIComponent(c.req.param("alias") ?? "")
    await sourceOf(plane, alias)
    return c.json({ templateID: alias, public: false })
  })
  for (const prefix of ["", "/v2"]) {
    on(`GET ${prefix}/templates`, async ({ plane, c }) => {
      const found = (await templates(plane)).map(({ snapshot, name }) => ({
        ...{ templateID: name.name, buildID: snapshot.id, public: false, buildStatus: "ready", buildCount: 1 },
        ...{
          aliases: [name.name],
          names: [`${name.name}:${name.tag}`],
          createdAt: snapshot.createdAt,
          updatedAt: snapshot.createdAt,
        },
      }))
      return c.json(found)
    })
  }
  on("GET /templates/:id/tags", async ({ plane, id, c }) => {
    const { name } = templateName(decodeURIComponent(id))
    const found = (await templates(plane)).filter((one) => one.name.name === name)
    if (found.length === 0) throw new Fault("not_found", `template '${id}' not found`)
    return c.json(
      found.map(({ snapshot, name: { tag } }) => ({ tag, buildID: snapshot.id, createdAt: snapshot.createdAt })),
    )
  })
  on("POST /templates/tags", async ({ plane, json, c }) => {
    const { target, tags } = await json(z.object({ target: z.string(), tags: z.array(z.string()).min(1).max(32) }))
    const { origin, isTemplate } = await sourceOf(plane, target)
    if (!isTemplate || origin.from === undefined) throw new Fault("not_found", `template '${target}' not found`)
    const { name } = templateName(target)
    for (const tag of tags) await copied(plane, origin.from, templateName(`${name}:${tag}`))
    return c.json({ buildID: origin.from, tags }, 201)
  })
  on("DELETE /templates/tags", async ({ plane, json, c }) => {
    const { name: given, tags } = await json(z.object({ name: z.string(), tags: z.array(z.string()).min(1).max(32) }))
    const { name } = templateName(given)
    for (const tag of tags) {
      const found = (await templates(plane)).find((one) => one.name.name === name && one.name.tag === tag)
      if (!found) throw new Fault("not_found", `template '${name}:${tag}' not found`)
      await plane.call("snapshot.delete", { id: found.snapshot.id })
    }
    return c.body(null, 204)
  })
  on("DELETE /templates/:id", async ({ plane, id, c }) => {
    const given = decodeURIComponent(id).replace(/:default$/, "")
    const all = await allSnapshots(plane)
    const plain = given.split("/").at(-1) ?? ""
    const found = all.filter((one) => one.id === given || one.name === plain || templateOf(one.name)?.name === plain)
    if (found.length === 0) throw new Fault("not_found", `template '${given}' not found`)
    for (const one of found) await plane.call("snapshot.delete", { id: one.id })
    return c.body(null, 204)
  })
}

function snapshots(on: On, { sandboxes }: ApiParts): void {
  on("POST /sandboxes/:id/snapshots", async ({ plane, id, json, c }) => {
    const { name } = await json(z.object({ name: z.string().nullish() }))
    const { session } = await sandboxes.get(plane, id)
    const before = name ? (await allSnapshots(plane)).filter((one) => one.name === name) : []
    const made = await plane.call("snapshot.create", { session: session.id, ...(name ? { name } : {}) })
    for (const one of before) await plane.call("snapshot.delete", { id: one.id })
    return c.json(snapshotShape(made), 201)
  })
  on("GET /snapshots", async ({ plane, c }) => {
    const session = c.req.query("sandboxID")
    const name = c.req.query("name")
    const all = await allSnapshots(plane, session === undefined ? undefined : `ses_${session.slice(0, 20)}`)
    const found = all.filter((one) => templateOf(one.name) === undefined && !one.name?.startsWith("e2bc-"))
    const { items, next } = pageOf(
      found.filter((one) => name === undefined || one.name === name),
      (field) => c.req.query(field),
    )
    if (next !== undefined) c.header("x-next-token", next)
    return c.json(items.map(snapshotShape))
  })
}

function snapshotShape({ id, name }: Snapshot): object {
  return { snapshotID: isId("snp", id) ? id : "", names: name === undefined ? [] : [name] }
}

async function templates(plane: Plane): Promise<{ snapshot: Snapshot; name: TemplateName }[]> {
  return (await allSnapshots(plane)).flatMap((snapshot) => {
    const name = templateOf(snapshot.name)
    return name ? [{ snapshot, name }] : []
  })
}

/** The same files under one more name: a snapshot has one. */
async function copied(plane: Plane, from: string, name: TemplateName): Promise<void> {
  const wanted = snapshotName(name)
  const before = (await allSnapshots(plane)).filter((one) => one.name === wanted)
  const { id } = await plane.call("session.create", { from, network: { mode: "none" }, labels: { e2b: "build" } })
  try {
    await plane.call("snapshot.create", { session: id, name: wanted })
  } finally {
    await plane.call("session.delete", { id })
  }
  for (const one of before) await plane.call("snapshot.delete", { id: one.id })
}

function unique(all: readonly TemplateName[]): TemplateName[] {
  return [...new Map(all.map((one) => [`${one.name}:${one.tag}`, one])).values()]
}
