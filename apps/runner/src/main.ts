import { once } from "node:events"
import { userInfo } from "node:os"
import { join } from "node:path"
import { build } from "@warren/base/build-info.ts"
import { systemClock } from "@warren/base/clock.ts"
import { refuseDebuggers } from "@warren/base/debugger.ts"
import { messageOf } from "@warren/base/fault.ts"
import { inheritedSockets, inheritedVariables } from "@warren/base/inherited-sockets.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { load } from "@warren/base/settings.ts"
import { holdLock } from "@warren/base/single-instance.ts"
import { Journal } from "@warren/protocol/journal.ts"
import { controlKeyOf } from "@warren/protocol/places.ts"
import { opFrames } from "@warren/protocol/rpc/op-frames.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"
import { openUserPlane } from "@warren/user-plane/user-plane.ts"
import { AccessLog } from "./control/access-log.ts"
import { openControlDoor } from "./control/control-door.ts"
import { openDriver } from "./drivers.ts"
import { readForwarded } from "./forwarded.ts"
import { openGatewayDoor } from "./gateway-door.ts"
import { keepEntries, type Entry } from "./log-entries.ts"
import { logFile } from "./log-file.ts"
import { RpcDoor } from "./rpc-door.ts"
import { sessionLogs } from "./session-logs.ts"
import { settings } from "./settings.ts"
import { transcriptionOf } from "./transcription.ts"
import { urlsOf } from "./urls-of.ts"
import { openUserRoot } from "./user-root.ts"
import { userPlaneOf } from "./user-plane.ts"

/** Log lines a reader over the wire can ask for. */
const entriesKept = 2_000
/** For answers that are on their way out when everything is closed. */
const lingerMs = 2_000

refuseDebuggers()
// What sandboxes are given must be readable inside; what is private lies in folders that only the owner enters.
process.umask(0o022)
// Before anything is opened: told to stop while it starts, it starts, and then stops in order.
const stop = new AbortController()
const toldToStop = Promise.race([once(process, "SIGTERM"), once(process, "SIGINT"), once(stop.signal, "abort")])
const config = load(settings, process.env)
const inherited = inheritedSockets(process.env, process.pid)
for (const name of inheritedVariables) delete process.env[name]
const programs = config.programs || import.meta.dirname
const root = await openUserRoot(config.home)

await using scope = new Scope()
// Runs last. What still holds the process a while after that was forgotten by somebody, and is no reason to stay.
scope.defer(() => void setTimeout(() => process.exit(), lingerMs).unref())
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
    supervisorProgram: join(programs, "supervisor.js"),
    keeperProgram: join(programs, "keeper.js"),
    recipes: join(programs, "images"),
    upstreams: { anthropic: config.anthropicUrl, openai: config.openaiUrl, git: urlsOf(config.gitUrls) },
    forges: urlsOf(config.forgeUrls),
    transcription: transcriptionOf(config, () => forwarded.agent["TRANSCRIBE_API_KEY"]),
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

const shutdown = (): void => stop.abort()
const access = new AccessLog(root.accessLog, systemClock, (thrown) =>
  log("error", "access.lost", { message: messageOf(thrown) }),
)
const handlers = userPlaneOf({ journal, access, startedAt: new Date(), driver: driver.name, plane, shutdown })
const { username: user, gid } = userInfo()
scope.use(
  await openGatewayDoor({
    path: config.gatewaySocket || root.gatewaySocket,
    fd: inherited.get("gateway"),
    marker: root.gatewayMarker,
    group: config.controlGroup || undefined,
    keyFile: config.controlKey || controlKeyOf(config.home),
    ...{ domain: config.gatewayDomain, hosts: config.gatewayHosts },
    ...{ user, plane, access, clock: systemClock, log, pages: join(programs, "web") },
  }),
)
const answered = { contract: userPlane, handlers, log, build, ops: opFrames(handlers, log) }
scope.use(await RpcDoor.open({ ...answered, path: root.rpcSocket, fd: inherited.get("rpc"), caller: { name: user } }))
scope.use(
  await openControlDoor({
    path: config.controlSocket || root.controlSocket,
    fd: inherited.get("control"),
    group: config.controlGroup || gid,
    keyFile: config.controlKey || controlKeyOf(config.home),
    ...{ user, plane: handlers, access, clock: systemClock, log, build },
  }),
)
log("info", "runner.ready", { socket: root.rpcSocket, pid: process.pid, build, driver: driver.name })

await toldToStop
log("info", "runner.stopping")
