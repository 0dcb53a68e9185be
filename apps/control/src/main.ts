import { once } from "node:events"
import { readFile } from "node:fs/promises"
import type { createSecureServer } from "node:http2"
import { userInfo } from "node:os"
import { join } from "node:path"
import { createAdaptorServer } from "@hono/node-server"
import { build } from "@warren/base/build-info.ts"
import { systemClock } from "@warren/base/clock.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import { Fault } from "@warren/base/fault.ts"
import { inheritedSockets, inheritedVariables } from "@warren/base/inherited-sockets.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { standardLines } from "@warren/base/standard-lines.ts"
import { backlog } from "@warren/base/unix-socket.ts"
import { WebSockets } from "@warren/protocol/http/web-socket.ts"
import { controlRootOf, controlSocketOf } from "@warren/protocol/places.ts"
import { app } from "./app.ts"
import { openControl } from "./control.ts"
import { E2bMount } from "./doors/e2b/mount.ts"
import { drain } from "./drain.ts"
import { GatewayFront } from "./gateway/front.ts"
import { Metrics } from "./observe/metrics.ts"
import { Traces } from "./observe/traces.ts"
import { firstLink } from "./owner.ts"
import { BuiltFiles } from "./page/files.ts"
import { settings } from "./settings.ts"
import { Tls } from "./tls.ts"

refuseDebuggers()
process.umask(0o077)
// Before anything is opened: told to stop while it starts, it starts, and then stops in order.
const toldToStop = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")])
const config = load(settings, process.env)
const log = createLog(standardLines(process.stdout)).with({ app: "control" })
const clock = systemClock
const isSingle = config.users === "single"
const me = userInfo()
if (!isSingle && me.uid === 0) {
  throw new Fault("forbidden", "with many users the control plane does not run as root", {
    hint: "give it an account of its own, without rights",
  })
}

await using scope = new Scope()
const folder = controlRootOf(config.home)
const tls = await Tls.open({ certificate: config.tlsCertificate, key: config.tlsKey }, log)
if (tls) scope.use(tls)
const publicUrl = new URL(config.publicUrl || `${tls ? "https" : "http"}://localhost:${config.port}`)
if (tls && publicUrl.protocol !== "https:") {
  throw new Fault("invalid", "with a certificate WARREN_PUBLIC_URL begins with https://")
}
const secret = config.oidcSecretFile === "" ? "" : (await readFile(config.oidcSecretFile, "utf8")).trim()
const control = scope.use(
  await openControl({
    folder,
    database: config.database || join(folder, "control.db"),
    publicUrl,
    gatewayDomain: config.gatewayDomain,
    // With many users root is the first admin: their token is in a file that only root and this account can read.
    owner: isSingle
      ? { name: me.username, socket: controlSocketOf(config.home), uid: me.uid }
      : { name: "root", socket: config.runners.replaceAll("{user}", "root"), uid: 0 },
    runners: isSingle ? "" : config.runners,
    requestsPerMinute: config.requestsPerMinute,
    auditMax: config.auditMax,
    oidc: config.oidcIssuer
      ? { issuer: config.oidcIssuer, client: config.oidcClient, secret, nameClaim: config.oidcName }
      : undefined,
    clock,
    log,
  }),
)
const metrics = new Metrics()
metrics.gauge("warren_audit_waiting", "Audit entries that are not written yet.", () => control.audit.waiting)
const traces = config.otlp ? scope.use(new Traces(config.otlp, log)) : undefined
const stop = new AbortController()
const isStopping = (): boolean => stop.signal.aborted
const { port, acmeFolder } = config
const hasTls = tls !== undefined
const e2b = scope.use(new E2bMount({ control, domain: config.e2bDomain, clock, log }))
// Built beside this very file.
const page = await BuiltFiles.open(join(import.meta.dirname, "web"))
const { fetch } = app({
  e2b,
  control,
  metrics,
  traces,
  publicUrl,
  port,
  hasTls,
  acmeFolder,
  gatewayDomain: config.gatewayDomain,
  page,
  clock,
  log,
  isStopping,
})
const sockets = scope.use(new WebSockets())
const listening = { fetch, hostname: config.listen, websocket: sockets }
const server = createAdaptorServer(
  tls
    ? {
        ...listening,
        createServer: ((_: object, answer: () => void) => tls.createServer(answer)) as typeof createSecureServer,
      }
    : // A request without a host is refused where that is written down, not before.
      { ...listening, serverOptions: { requireHostHeader: false } },
)
// Who begins a request and says no more is sent away after so long, or a little later; a large file on a slow line may take hours.
Object.assign(server, { headersTimeout: 10_000, requestTimeout: 0, connectionsCheckingInterval: 2_000 })
sockets.guard(server)
const local = ["localhost", "127.0.0.1", "[::1]"].map((host) => `${host}:${port}`)
const front = scope.use(
  new GatewayFront({
    names: {
      domain: config.gatewayDomain,
      hosts: new Set([...local, publicUrl.host, `${config.gatewayDomain}:${port}`, config.gatewayDomain]),
    },
    scheme: publicUrl.protocol === "https:" ? "https" : "http",
    ...{ ...control, key: control.gatewayKey, metrics, clock, log },
  }),
)
front.guard(server)
e2b.guard(server)
const listened = once(server, "listening")
const inherited = inheritedSockets(process.env, process.pid).get("http")
for (const name of inheritedVariables) delete process.env[name]
if (inherited === undefined) server.listen({ port, host: config.listen, backlog })
else server.listen({ fd: inherited })
await listened
scope.defer(async () => {
  control.watch.endFeeds()
  await control.mcp[Symbol.asyncDispose]()
  tls?.endSessions()
  if (await drain(server, config.drainS * 1000, clock)) return
  const closed = once(server, "close")
  front[Symbol.dispose]()
  if ("closeAllConnections" in server) server.closeAllConnections()
  tls?.cut()
  sockets[Symbol.dispose]()
  await closed
})
log("info", "control.ready", { port: config.port, pid: process.pid, build })
const link = await firstLink(control.store, control.invites, isSingle ? me.username : undefined)
// Not into the log, which is kept: whoever reads it within a quarter of an hour would be let in.
if (link !== undefined) process.stderr.write(`Sign in to Warren, once, within 15 minutes: ${link}\n`)

await toldToStop
stop.abort()
log("info", "control.stopping")
