import { once } from "node:events"
import type { Socket } from "node:net"
import { userInfo } from "node:os"
import { join } from "node:path"
import { build } from "@warren/base/build-info.ts"
import { systemClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { Journal } from "@warren/protocol/journal.ts"
import { opFrames } from "@warren/protocol/rpc/op-frames.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { openUserPlane } from "@warren/user-plane/user-plane.ts"
import { openDriver } from "./drivers.ts"
import { readForwarded } from "./forwarded.ts"
import { keepEntries, type Entry } from "./log-entries.ts"
import { logFile } from "./log-file.ts"
import { sessionLogs } from "./session-logs.ts"
import { settings } from "./settings.ts"
import { openUserRoot } from "./user-root.ts"
import { userPlaneOf } from "./user-plane.ts"

/** Log lines a reader over the wire can ask for. */
const entriesKept = 2_000

// What sandboxes are given must be readable inside; what is private lies in folders that only the owner enters.
process.umask(0o022)
const config = load(settings, process.env)
const programs = config.programs || import.meta.dirname
const root = await openUserRoot(config.home)

await using scope = new Scope()
scope.use(holdLock(root.lock, "the runner of this user"))
const journal = new Journal<Entry>(entriesKept, Date.now() * 1000)
const log = createLog(keepEntries(journal, logFile(root.log), sessionLogs(root.sessionLogs))).with({ app: "runner" })
const forwarded = await readForwarded(config.forwarded)
const driver = await openDriver(root.path, { ...config, programs }, log, scope)
const plane = scope.use(
  await openUserPlane({
    root: root.path,
    drivers: [driver],
    image: config.image,
    sqlProgram: join(programs, "sql.js"),
    recipes: join(programs, "images"),
    upstreams: { anthropic: config.anthropicUrl, openai: config.openaiUrl },
    embeddings: config.embeddingsUrl
      ? {
          url: config.embeddingsUrl,
          model: config.embeddingsModel,
          dimensions: config.embeddingsDimensions,
          key: () => forwarded.agent["EMBEDDINGS_API_KEY"],
        }
      : undefined,
    env: forwarded.shell,
    sessionsMax: config.sessionsMax,
    poolBytes: config.poolMb * 1024 * 1024,
    poolLeast: config.poolLeast,
    clock: systemClock,
    log,
  }),
)

const stop = new AbortController()
const shutdown = (): void => stop.abort()
const handlers = userPlaneOf({ journal, startedAt: new Date(), driver: driver.name, plane, shutdown })
const caller = { name: userInfo().username }
const ops = opFrames(handlers, log)
const connections = new Map<Socket, RpcConnection<typeof userPlane>>()
const server = await listenUnix(root.rpcSocket, (socket) => {
  connections.set(socket, new RpcConnection(socket, caller, { contract: userPlane, handlers, log, build, ops }))
  socket.once("close", () => connections.delete(socket))
})
scope.defer(async () => {
  await Promise.all([...connections.values()].map((connection) => connection[Symbol.asyncDispose]()))
  await closeServer(server, connections.keys())
})
log("info", "runner.ready", { socket: root.rpcSocket, pid: process.pid, build, driver: driver.name })

await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(stop.signal, "abort")])
log("info", "runner.stopping")
