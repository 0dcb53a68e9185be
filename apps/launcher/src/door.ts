import { chmod, chown } from "node:fs/promises"
import type { Socket } from "node:net"
import type { Log } from "@warren/base/log.ts"
import { build } from "@warren/base/build-info.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import { launcher } from "@warren/protocol/launcher/launcher.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"

interface DoorOptions {
  readonly path: string
  /** The number of the control plane's group: besides root nobody else can connect. */
  readonly group: number
  readonly handlers: Handlers<typeof launcher>
  readonly log: Log
}

/** More connections than this at once are nobody's who means well. */
const connectionsMax = 64

export async function openDoor({ path, group, handlers, log }: DoorOptions): Promise<AsyncDisposable> {
  const connections = new Map<Socket, RpcConnection<typeof launcher>>()
  const server = await listenUnix(path, (socket) => {
    const connection = new RpcConnection(socket, { name: "" }, { contract: launcher, handlers, log, build })
    connections.set(socket, connection)
    socket.once("close", () => connections.delete(socket))
  })
  server.maxConnections = connectionsMax
  const door = {
    async [Symbol.asyncDispose]() {
      await Promise.all([...connections.values()].map((one) => one[Symbol.asyncDispose]()))
      await closeServer(server, connections.keys())
    },
  }
  try {
    // The group first: for a moment fewer may connect, never more.
    await chown(path, 0, group)
    await chmod(path, 0o660)
  } catch (failure) {
    await door[Symbol.asyncDispose]()
    throw failure
  }
  return door
}
