import { version } from "@warren/base/build-info.ts"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Scoped } from "@warren/protocol/contract.ts"
import { controlPlane, publicCalls } from "@warren/protocol/control-plane.ts"
import { sendJson } from "@warren/protocol/http/json.ts"
import { openApi } from "@warren/protocol/http/openapi.ts"
import { answerFaults, routes } from "@warren/protocol/http/routes.ts"
import type { TokenScope } from "@warren/protocol/token-scope.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { Hono, type MiddlewareHandler } from "hono"
import { stream } from "hono/streaming"
import { acmeRoutes } from "./acme.ts"
import type { Control } from "./control.ts"
import { docsPage, docsPolicy } from "./docs-page.ts"
import type { E2bMount } from "./doors/e2b/mount.ts"
import { mcpDoor } from "./doors/mcp/door.ts"
import { sandkastenDoor } from "./doors/sandkasten/door.ts"
import { valetDoor } from "./doors/valet/door.ts"
import { shownEntry } from "./desks/shapes.ts"
import { onlyOurs } from "./guard.ts"
import { joinPage, joinPolicy } from "./join-page.ts"
import { oidcRoutes } from "./login/oidc-routes.ts"
import type { Metrics } from "./observe/metrics.ts"
import { observe, Visits } from "./observe/observe.ts"
import type { Traces } from "./observe/traces.ts"
import type { BuiltFiles } from "./page/files.ts"
import { pageRoutes } from "./page/page.ts"
import type { Visit } from "./visit.ts"

interface AppParts {
  readonly control: Control
  readonly metrics: Metrics
  readonly traces: Traces | undefined
  readonly publicUrl: URL
  readonly port: number
  /** It shows a certificate itself. */
  readonly hasTls?: boolean
  /** Where an ACME client puts its answers; empty: nowhere. */
  readonly acmeFolder?: string
  /** For clients of E2B. */
  readonly e2b?: E2bMount
  /** Below which previews have names of their own; empty: none have. */
  readonly gatewayDomain?: string
  /** What was built of the page; without it there is only the API. */
  readonly page?: BuiltFiles | undefined
  readonly clock: Clock
  readonly log: Log
  /** It is told to stop: what comes is still answered, but who balances load should send no more. */
  isStopping(): boolean
}

/** The public door. */
export function app(parts: AppParts): Hono {
  const { control, log } = parts
  const { gate, identity, cookies, doorman, oidc } = control
  const visits = parts.e2b?.visits ?? new Visits()
  const app = new Hono()
  answerFaults(app, log)
  app.use(observe(visits, { ...parts, gate }))
  app.use(ownWords)
  // Before the names are looked at: a certificate authority asks for whatever name the certificate is to have.
  if (parts.acmeFolder) app.route("/", acmeRoutes(parts.acmeFolder))
  // Before the names are looked at, too: sandboxes have names of their own, and are opened by what a page has to be given.
  if (parts.e2b) app.use(parts.e2b.sandboxes)
  app.use(onlyOurs(parts.port, parts.publicUrl, parts.hasTls ?? false, control.alsoPage ? [control.alsoPage] : []))
  app.get("/health", (c) => {
    const isStopping = parts.isStopping()
    return c.json({ status: isStopping ? "stopping" : "ok", version }, isStopping ? 503 : 200)
  })
  const document = openApi(publicCalls, { version })
  app.get("/v1/openapi.json", (c) => sendJson(c, document))
  const page = docsPage(document)
  app.get("/docs", (c) => c.html(page, 200, { "content-security-policy": docsPolicy }))
  if (parts.page) app.route("/", pageRoutes(parts.page, parts.publicUrl, parts.gatewayDomain ?? ""))
  app.get("/join", (c) => c.html(joinPage, 200, { "content-security-policy": joinPolicy }))
  const caller = async (request: Request): Promise<Visit> => {
    const visit = visits.of(request)
    visit.principal = await identity.of(request)
    return visit
  }
  // A cookie that does not count any more must not keep its owner from signing in.
  const anybody = async (request: Request): Promise<Visit> => {
    const visit = visits.of(request)
    visit.principal = await identity.of(request).catch((thrown: unknown) => {
      if (Fault.from(thrown).code !== "unauthenticated" || request.headers.has("authorization")) throw thrown
      if (request.method === "GET") visit.headers.push(cookies.clear("sign-in"))
      return undefined
    })
    return visit
  }
  const known = async (request: Request): Promise<Visit> => {
    const visit = await caller(request)
    // Asked for here already: nothing of a stranger's request is read.
    void visit.who
    return visit
  }
  if (oidc) app.route("/", oidcRoutes({ oidc, doorman, cookies, gate, visit: visits.of }))
  plainRoutes(app, parts, (request, scope) => known(request).then((visit) => needs(visit, scope)))
  const handlers = gate.guard(controlPlane, control.controlPlane)
  for (const isOpen of [true, false]) {
    const contract = partOf(controlPlane, isOpen) as typeof controlPlane
    app.route("/", routes({ contract, handlers, log, caller: isOpen ? anybody : known }))
  }
  const plane = gate.guard(userPlane, control.userPlane)
  // The link to the runner has checked what comes over it.
  app.route("/", routes({ contract: userPlane, handlers: plane, isChecked: true, log, caller: known }))
  app.route("/", mcpDoor({ mcp: control.mcp, gate, known, publicUrl: parts.publicUrl }))
  app.route("/sandkasten", sandkastenDoor({ plane, known }, log))
  if (parts.e2b) app.route("/e2b", parts.e2b.api)
  app.route("/valet", valetDoor({ plane, known, publicUrl: parts.publicUrl }, log))
  return app
}

/** What belongs to one connection is the server's to say; over HTTP/2 such a header is no answer at all, and ends the process. */
const ownWords: MiddlewareHandler = async (c, next) => {
  await next()
  for (const name of ["transfer-encoding", "connection", "keep-alive"]) c.res.headers.delete(name)
}

/** The calls for those who have not said who they are, or the others. */
function partOf(contract: Scoped, isOpen: boolean): Scoped {
  return Object.fromEntries(Object.entries(contract).filter(([, { scope }]) => (scope === "open") === isOpen))
}

/** What is not JSON, and so no call. */
function plainRoutes(app: Hono, parts: AppParts, may: (request: Request, scope: TokenScope) => Promise<void>): void {
  app.get("/metrics", async (c) => {
    await may(c.req.raw, "metrics:read")
    return c.text(parts.metrics.text(), 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" })
  })
  app.get("/v1/audit/export", async (c) => {
    await may(c.req.raw, "admin")
    await parts.control.audit.written()
    c.header("content-type", "application/x-ndjson")
    return stream(c, async (out) => {
      for await (const row of parts.control.audit.all()) await out.write(`${JSON.stringify(shownEntry(row))}\n`)
    })
  })
}

function needs(visit: Visit, scope: TokenScope): void {
  if (!visit.who.scopes.has(scope)) throw new Fault("forbidden", `this needs the scope ${scope}`)
}
