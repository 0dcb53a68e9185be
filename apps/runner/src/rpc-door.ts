import { chmod, chown } from "node:fs/promises"
import type { Server, Socket } from "node:net"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import type { Caller } from "@warren/protocol/contract.ts"
import { RpcConnection, type RpcServerOptions } from "@warren/protocol/rpc/server.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"

interface DoorOptions extends RpcServerOptions<typeof userPlane> {
  readonly path: string
  /** A socket that is open already; who may connect is then settled. */
  readonly fd?: number | undefined
  readonly caller: Caller
  /** Who else may connect: a group's number. Nobody when absent. */
  readonly group?: number | undefined
}

const ownerOnly = 0o600
const ownerAndGroup = 0o660

/** A socket that the user plane is answered on. */
export class RpcDoor implements AsyncDisposable {
  readonly #server: Server
  readonly #connections: Map<Socket, RpcConnection<typeof userPlane>>

  private constructor(server: Server, connections: Map<Socket, RpcConnection<typeof userPlane>>) {
    this.#server = server
    this.#connections = connections
  }

  static async open({ path, fd, caller, group, ...options }: DoorOptions): Promise<RpcDoor> {
    const connections = new Map<Socket, RpcConnection<typeof userPlane>>()
    const accept = (socket: Socket): void => {
      connections.set(socket, new RpcConnection(socket, caller, options))
      socket.once("close", () => connections.delete(socket))
    }
    const server = await listenUnix(path, accept, fd)
    const door = new RpcDoor(server, connections)
    if (fd !== undefined) return door
    try {
      // The group first: for a moment fewer may connect, never more.
      if (group !== undefined) await chown(path, process.getuid?.() ?? 0, group)
      await chmod(path, group === undefined ? ownerOnly : ownerAndGroup)
    } catch (failure) {
      await door[Symbol.asyncDispose]()
      throw failure
    }
    return door
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection[Symbol.asyncDispose]()))
    await closeServer(this.#server, this.#connections.keys())
  }
}
