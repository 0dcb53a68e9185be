import { Fault } from "@warren/base/fault.ts"
import { Hono } from "hono"
import type { Gate } from "../gate.ts"
import type { Visit } from "../visit.ts"
import type { Cookies } from "./cookie.ts"
import { loginLimits, type Doorman } from "./doorman.ts"
import { oidcLimits, type Oidc } from "./oidc.ts"

interface OidcRouteParts {
  readonly oidc: Oidc
  readonly doorman: Doorman
  readonly cookies: Cookies
  readonly gate: Gate
  visit(request: Request): Visit
}

/** The two places a browser passes on its way to the identity provider and back. They answer with redirects, so they are no calls. */
export function oidcRoutes({ oidc, doorman, cookies, gate, visit: visitOf }: OidcRouteParts): Hono {
  const app = new Hono()
  app.get("/v1/login/oidc", async (c) => {
    const visit = visitOf(c.req.raw)
    doorman.slow(visit, `oidc ${visit.address}`, loginLimits.perAddress)
    const { to, kept } = await oidc.begin(c.req.query("next") ?? "/")
    visit.headers.push(cookies.set("oidc", kept, oidcLimits.lifeMs))
    return c.redirect(to.href)
  })
  app.get("/v1/login/oidc/callback", async (c) => {
    const visit = visitOf(c.req.raw)
    visit.headers.push(cookies.clear("oidc"))
    try {
      doorman.slow(visit, `oidc ${visit.address}`, loginLimits.perAddress)
      const { user, next } = await oidc.end(new URL(c.req.url).searchParams, cookies.read(c.req.raw, "oidc"))
      await doorman.signIn(visit, user, "oidc")
      await gate.noteSignIn(visit, "ok")
      return c.redirect(next)
    } catch (thrown) {
      await gate.noteSignIn(visit, Fault.from(thrown).code)
      throw thrown
    }
  })
  return app
}
