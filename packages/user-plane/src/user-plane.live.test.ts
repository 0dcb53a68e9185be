import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import type { Socket } from "node:net"
import { systemClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import { RunnerLink } from "@warren/protocol/rpc/link.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { afterAll, beforeAll } from "vitest"
import { Asking, userPlaneConformance } from "./conformance.ts"
import { dataCalls } from "@warren/protocol/user-plane.ts"
import { openUserPlane } from "./user-plane.ts"

const dist = resolve(import.meta.dirname, "../../../dist")
const root = realpathSync(mkdtempSync(join(tmpdir(), "wp-")))
const scope = new Scope()
let local: Handlers<typeof dataCalls>
let overSocket: Handlers<typeof dataCalls>

beforeAll(async () => {
  const log = createLog(() => undefined)
  const program = (name: string): string => join(dist, name)
  const programs = { init: program("warren-init"), launch: program("warren-launch"), libraries: program("crun-lib") }
  const driver = scope.use(
    await openOciDriver({ root: join(root, "oci"), programs, log, volume: { firstBytes: 2 ** 30 } }),
  )
  const plane = scope.use(
    await openUserPlane({
      ...{ root, drivers: [driver], image: "host", sqlProgram: program("sql.js"), recipes: program("images") },
      supervisorProgram: program("supervisor.js"),
      upstreams: { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com" },
      ...{ env: {}, sessionsMax: 100, poolBytes: 0, poolLeast: 0, clock: systemClock, log },
    }),
  )
  local = plane.handlers
  const path = join(root, "rpc.sock")
  const sockets = new Set<Socket>()
  const server = await listenUnix(path, (socket) => {
    sockets.add(socket)
    void new RpcConnection(socket, { name: "me" }, { contract: dataCalls, handlers: local, log, build: "test" })
  })
  scope.defer(() => closeServer(server, sockets))
  overSocket = scope.use(new RunnerLink(dataCalls, path, "test")).handlers()
})

afterAll(async () => {
  try {
    const ask = new Asking(dataCalls, () => local)
    for (const { id } of (await ask.call("session.list", { limit: 200 })).items)
      await ask.call("session.delete", { id })
  } finally {
    await scope.close()
    rmSync(root, { recursive: true, force: true })
  }
})

userPlaneConformance("in process", () => new Asking(dataCalls, () => local))
userPlaneConformance("over a socket", () => new Asking(dataCalls, () => overSocket))
