import { version } from "@warren/base/build-info.ts"
import type { Log } from "@warren/base/log.ts"
import { openApi } from "@warren/protocol/http/openapi.ts"
import { answerFaults, routes } from "@warren/protocol/http/routes.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { Hono } from "hono"
import { onlyLocal } from "./guard.ts"
import { checkToken } from "./token.ts"

interface AppParts {
  readonly runner: UserPlane
  readonly token: string
  readonly port: number
  readonly log: Log
}

/** The public door. */
export function app(parts: AppParts): Hono {
  const app = new Hono()
  answerFaults(app, parts.log)
  app.use(onlyLocal(parts.port))
  app.get("/health", (c) => c.json({ status: "ok", version }))
  const document = openApi(userPlane, { version })
  app.get("/v1/openapi.json", (c) => c.json(document))
  const caller = (request: Request): { name: string } => {
    checkToken(request, parts.token)
    return { name: "owner" }
  }
  app.route("/", routes({ contract: userPlane, handlers: parts.runner, log: parts.log, caller }))
  return app
}
