import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Hono, type Context as HonoContext } from "hono"
import type { ContentfulStatusCode } from "hono/utils/http-status"
import type { z } from "zod"
import type { AccessTokens } from "../access-token.ts"
import { bytesOf, parsed } from "../body.ts"
import type { Known } from "../known.ts"
import type { Plane } from "../plane.ts"
import { apiRefusal } from "../refusal.ts"
import type { Sandboxes } from "../sandboxes.ts"
import { sandboxRoutes } from "./sandbox-routes.ts"
import type { Templates } from "./template-source.ts"

const bodyBytesMax = 1024 * 1024

export interface ApiParts {
  readonly sandboxes: Sandboxes
  readonly templates: Templates
  readonly tokens: AccessTokens
  readonly known: Known
  /** Behind which sandboxes have host names; empty where they have none. */
  readonly domain: string
  readonly log: Log
  /** Whoever shows a key, and which. */
  asking(c: HonoContext): Promise<{ readonly plane: Plane; readonly key: string }>
}

/** One request, by somebody known. */
export interface Visit {
  readonly plane: Plane
  readonly key: string
  readonly id: string
  readonly c: HonoContext
  json<S extends z.ZodType>(schema: S): Promise<z.output<S>>
}

export type On = (route: string, handle: (visit: Visit) => Promise<Response>) => void

/** The control API: its paths, its shapes, its codes. */
export function apiDoor(parts: ApiParts): Hono {
  const door = new Hono()
  door.onError((thrown, c) => {
    const fault = Fault.from(thrown)
    if (fault.code === "internal") {
      parts.log("error", "e2b.bug", { path: c.req.path, message: messageOf(thrown), stack: thrown.stack })
    }
    const refusal = apiRefusal(fault)
    return c.json(refusal, refusal.code as ContentfulStatusCode)
  })
  const on: On = (route, handle) => {
    const [method = "", path = ""] = route.split(" ")
    door.on(method, path, async (c) => {
      const asking = await parts.asking(c)
      const json = async <S extends z.ZodType>(schema: S) => parsed(schema, await bytesOf(c.req.raw, bodyBytesMax))
      return handle({ ...asking, id: c.req.param("id") ?? "", c, json })
    })
  }
  door.get("/health", (c) => c.body(null, 204))
  sandboxRoutes(on, parts)
  door.all("*", (c) => {
    throw new Fault("not_found", `there is no ${c.req.method} ${c.req.path}`)
  })
  return door
}
