import { once } from "node:events"
import type { Socket } from "node:net"
import { userInfo } from "node:os"
import { build } from "@warren/base/build-info.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { Journal } from "@warren/protocol/journal.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { keepEntries, type Entry } from "./log-entries.ts"
import { logFile } from "./log-file.ts"
import { settings } from "./settings.ts"
import { openUserRoot } from "./user-root.ts"
import { userPlaneOf } from "./user-plane.ts"

/** Log lines a reader over the wire can ask for. */
const entriesKept = 2_000

process.umask(0o077)
const config = load(settings, process.env)
const root = await openUserRoot(config.home)

await using scope = new Scope()
scope.use(holdLock(root.lock, "the runner of this user"))
const journal = new Journal<Entry>(entriesKept, Date.now() * 1000)
const toFile = logFile(root.log)
const log = createLog(keepEntries(journal, toFile)).with({ app: "runner" })

const stop = new AbortController()
const handlers = userPlaneOf({ journal, startedAt: new Date(), shutdown: () => stop.abort() })
const caller = { name: userInfo().username }
const connections = new Map<Socket, RpcConnection<typeof userPlane>>()
const server = await listenUnix(root.rpcSocket, (socket) => {
  connections.set(socket, new RpcConnection(socket, caller, { contract: userPlane, handlers, log, build }))
  socket.once("close", () => connections.delete(socket))
})
scope.defer(async () => {
  await Promise.all([...connections.values()].map((connection) => connection[Symbol.asyncDispose]()))
  await closeServer(server, connections.keys())
})
log("info", "runner.ready", { socket: root.rpcSocket, pid: process.pid, build })

await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(stop.signal, "abort")])
log("info", "runner.stopping")
