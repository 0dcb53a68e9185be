import type { Clock } from "@warren/base/clock.ts"
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
import { metricRoutes } from "./metric-routes.ts"
import { templateRoutes } from "./template-routes.ts"
import { volumeRoutes } from "./volume-routes.ts"
import type { Builds } from "../templates/builds.ts"

const bodyBytesMax = 1024 * 1024

export interface ApiParts {
  readonly sandboxes: Sandboxes
  readonly builds: Builds
  readonly clock: Clock
  readonly tokens: AccessTokens
  readonly known: Known
  /** Behind which sandboxes have host names; empty where they have none. */
  readonly domain: string
  readonly log: Log
  /** Whoever shows a key, and which. */
  asking(c: HonoContext): Promise<{ readonly plane: Plane; readonly key: string }>
  /** In the name of a key that is not shown; undefined when it counts no more. */
  within(request: Request, key: string): Promise<Plane | undefined>
}

/** One request, by somebody known. */
export interface Visit {
  readonly plane: Plane
  readonly key: string
  readonly id: string
  readonly c: HonoContext
  json<S extends z.ZodType>(schema: S): Promise<z.output<S>>
}

/** For what shows itself who it is. */
export type Open = (route: string, handle: (c: HonoContext) => Promise<Response>) => void

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
  const open: Open = (route, handle) => {
    const [method = "", path = ""] = route.split(" ")
    door.on(method, path, handle)
  }
  metricRoutes(on, parts)
  sandboxRoutes(on, parts)
  templateRoutes(on, open, parts)
  volumeRoutes(on, open, parts)
  door.all("*", (c) => {
    throw new Fault("not_found", `there is no ${c.req.method} ${c.req.path}`)
  })
  return door
}
