import { silentLog } from "@warren/base/log.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { healthContract, healthOf } from "../health.ts"
import { serve } from "../peer-program.ts"

const options = {
  contract: healthContract,
  handlers: { "health.check": () => Promise.resolve(healthOf(process.pid)) },
  log: silentLog,
  build: "bench",
}
await serve((socket) => void new RpcConnection(socket, { name: "bench" }, options))
