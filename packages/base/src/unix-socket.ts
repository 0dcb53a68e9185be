import { chmod, rm } from "node:fs/promises"
import { connect, createServer, type Server, type Socket } from "node:net"
import { errnoOf, Fault } from "./fault.ts"

/** The kernel's limit. Node cuts a longer path off silently and binds somewhere else. */
const pathBytesMax = 107

/** Listens at `path`, for its owner only. The caller holds a lock: whatever lies there is left over, and is replaced. */
export async function listenUnix(path: string, onConnection: (socket: Socket) => void): Promise<Server> {
  checkSocketPath(path)
  await rm(path, { force: true })
  const server = createServer(onConnection)
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(path, resolve)
  })
  await chmod(path, 0o600)
  return server
}

export function connectUnix(path: string, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    checkSocketPath(path)
    if (signal?.aborted) return reject(signal.reason)
    const socket = connect(path)
    const abort = (): void => {
      socket.destroy()
      reject(signal?.reason)
    }
    signal?.addEventListener("abort", abort, { once: true })
    const settle = (act: () => void): void => {
      signal?.removeEventListener("abort", abort)
      socket.removeAllListeners("error")
      act()
    }
    socket.once("connect", () => settle(() => resolve(socket)))
    socket.once("error", (cause) => settle(() => reject(refused(path, cause))))
  })
}

/** Stops listening and cuts what is connected. */
export function closeServer(server: Server, sockets: Iterable<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })
}

function refused(path: string, cause: Error): Fault {
  const isAbsent = errnoOf(cause) === "ENOENT" || errnoOf(cause) === "ECONNREFUSED"
  const message = isAbsent ? `nobody listens at ${path}` : `could not connect to ${path}`
  return new Fault("unavailable", message, { cause })
}

function checkSocketPath(path: string): void {
  if (Buffer.byteLength(path) > pathBytesMax) {
    throw new Fault("invalid", `the socket path ${path} is longer than ${pathBytesMax} bytes`, {
      hint: "set WARREN_HOME to a shorter folder",
    })
  }
}
