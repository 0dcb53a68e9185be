import { Fault } from "@warren/base/fault.ts"
import { z } from "zod"
import type { Session } from "../plane.ts"
import { Egress, wayOut } from "../network.ts"
import { isPaused, type Sandbox } from "../sandboxes.ts"
import { create, Wished } from "./create.ts"
import type { ApiParts, On } from "./door.ts"
import { allSandboxes, pageOf, selected, statesAsked } from "./list.ts"
import { detailShape, listedShape, madeShape } from "./shapes.ts"

/** Where a client says nothing: the newer ones leave it to us, the older ones think of 15 seconds. */
const timeoutS = { v1: 15, v2: 300 } as const
const Timeout = z.object({ timeout: z.number().min(0) })
const Connect = z.object({ timeout: z.number().min(0).optional(), memory: z.boolean().optional() })
const Pause = z.object({ memory: z.boolean().nullish() })
const Fork = z.object({ timeout: z.number().min(0).optional(), count: z.int().min(1).max(100).optional() })

export function sandboxRoutes(on: On, parts: ApiParts): void {
  const { sandboxes } = parts
  for (const version of ["v1", "v2"] as const) {
    const prefix = version === "v1" ? "" : "/v2"
    on(`POST ${prefix}/sandboxes`, async ({ plane, key, json, c }) => {
      const wished = await json(Wished)
      const made = await create(wished, { ...parts, plane, key, timeoutS: timeoutS[version] })
      return c.json(told(parts, made), 201)
    })
    on(`POST ${prefix}/sandboxes/:id/connect`, connect(parts))
  }
  on("POST /sandboxes/:id/resume", connect(parts))
  on("GET /v2/sandboxes", async ({ plane, c }) => {
    const all = await allSandboxes(plane, sandboxes)
    const query = (name: string): string | undefined => c.req.query(name)
    const { items, next } = pageOf(selected(all, query, statesAsked(query)), query)
    c.header("x-total-running", String(all.filter((one) => !isPaused(one)).length))
    if (next !== undefined) c.header("x-next-token", next)
    return c.json(items.map(listedShape))
  })
  on("GET /sandboxes", async ({ plane, c }) => {
    const all = await allSandboxes(plane, sandboxes)
    return c.json(selected(all, (name) => c.req.query(name), ["running"]).map(listedShape))
  })
  on("GET /sandboxes/:id", async ({ plane, id, c }) => {
    return c.json(detailShape(await sandboxes.get(plane, id), parts.domain))
  })
  changes(on, parts)
}

/** What is done to one that is there. */
function changes(on: On, parts: ApiParts): void {
  const { sandboxes } = parts
  on("DELETE /sandboxes/:id", async ({ plane, id, c }) => {
    await sandboxes.kill(plane, await sandboxes.get(plane, id))
    return c.body(null, 204)
  })
  on("POST /sandboxes/:id/timeout", async ({ plane, id, json, c }) => {
    const { timeout } = await json(Timeout)
    await sandboxes.setTimeout(plane, await sandboxes.get(plane, id), timeout)
    return c.body(null, 204)
  })
  on("POST /sandboxes/:id/refreshes", async ({ plane, id, json, c }) => {
    const { duration } = await json(z.object({ duration: z.number().min(0).optional() }))
    await sandboxes.extend(plane, await sandboxes.get(plane, id), duration ?? timeoutS.v1)
    return c.body(null, 204)
  })
  on("POST /sandboxes/:id/pause", async ({ plane, id, json, c }) => {
    const { memory } = await json(Pause)
    const sandbox = await sandboxes.get(plane, id)
    if (isPaused(sandbox)) throw new Fault("conflict", `sandbox "${id}" is already paused`)
    await sandboxes.pause(plane, sandbox, memory !== false)
    return c.body(null, 204)
  })
  on("PUT /sandboxes/:id/network", async ({ plane, id, json, c }) => {
    const { allow_internet_access: internet, ...egress } = await json(
      Egress.extend({ allow_internet_access: z.boolean().optional() }),
    )
    const sandbox = await sandboxes.get(plane, id)
    const { allowPublicTraffic, maskRequestHost, httpsPorts } = sandbox.settings.network ?? {}
    const network = { ...egress, allowPublicTraffic, maskRequestHost, httpsPorts }
    await sandboxes.change(plane, sandbox, { network, internet }, { network: wayOut(egress, internet) })
    return c.body(null, 204)
  })
  on("POST /sandboxes/:id/fork", async ({ plane, id, key, json, c }) => {
    const { timeout, count = 1 } = await json(Fork)
    const parent = await sandboxes.get(plane, id)
    const { sessions } = await plane.call("session.fork", { id: parent.session.id, count })
    const life = timeout ?? parent.settings.timeoutS
    const forks = sessions.map(async (session) => {
      const fork = { ...parent, session }
      await sandboxes.change(plane, fork, { key, timeoutS: life }, { lifeMs: sandboxes.lifeOf(session, life) })
      return { sandbox: told(parts, await plane.call("session.get", { id: session.id })) }
    })
    return c.json(await Promise.all(forks), 201)
  })
}

function connect(parts: ApiParts): Parameters<On>[1] {
  const { sandboxes } = parts
  return async ({ plane, key, id, json, c }) => {
    const { timeout, memory } = await json(Connect)
    const sandbox = await sandboxes.get(plane, id)
    const life = timeout ?? sandbox.settings.timeoutS
    const session = isPaused(sandbox)
      ? await sandboxes.resume(plane, sandbox, life, memory === false)
      : await sandboxes.extend(plane, sandbox, life)
    // What opens a sandbox does so in the name of the key that made it: another is told it only if it may run programs there itself.
    if (sandbox.settings.key !== key) await plane.call("process.list", { session: session.id })
    return c.json(told(parts, session), isPaused(sandbox) ? 201 : 200)
  }
}

function told({ sandboxes, tokens, domain, known }: ApiParts, session: Session): object {
  const sandbox = sandboxes.shown(session)
  if (!sandbox) throw new Fault("conflict", "the sandbox has ended already")
  known.add(sandbox.id)
  return madeShape(sandbox satisfies Sandbox, tokens, domain)
}
