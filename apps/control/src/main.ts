import { once } from "node:events"
import { serve } from "@hono/node-server"
import { build } from "@warren/base/build-info.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { WebSockets } from "@warren/protocol/http/web-socket.ts"
import { rpcSocketOf, tokenFileOf } from "@warren/protocol/places.ts"
import { RunnerLink } from "@warren/protocol/rpc/link.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { app } from "./app.ts"
import { settings } from "./settings.ts"
import { openToken } from "./token.ts"

process.umask(0o077)
const config = load(settings, process.env)
const log = createLog((line) => process.stdout.write(line)).with({ app: "control" })

await using scope = new Scope()
const token = await openToken(tokenFileOf(config.home))
const runner = scope.use(new RunnerLink(userPlane, rpcSocketOf(config.home), "control"))
const { fetch } = app({ runner: runner.handlers(), token, port: config.port, log })
const sockets = new WebSockets()
const server = serve({ fetch, port: config.port, hostname: "127.0.0.1", websocket: sockets })
await once(server, "listening")
scope.defer(async () => {
  server.close()
  // Streams that are open would hold the end back for ever; their readers come back with `after`.
  if ("closeAllConnections" in server) server.closeAllConnections()
  sockets[Symbol.dispose]()
  await once(server, "close")
})
log("info", "control.ready", { port: config.port, pid: process.pid, build })

await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")])
log("info", "control.stopping")
