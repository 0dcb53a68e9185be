import { chmod, lstat, rm } from "node:fs/promises"
import { connect, createServer, type Server, type Socket } from "node:net"
import { errnoOf, Fault } from "./fault.ts"

/** The kernel's limit. Node cuts a longer path off silently and binds somewhere else. */
const pathBytesMax = 107

/** How many may wait to be let in, as far as the kernel allows it: it turns the next away at once, however little there is to do for each. */
export const backlog = 4_096

/**
 * Listens at `path`, for its owner only. The caller holds a lock: whatever lies there is left over, and is replaced. With a
 * file descriptor it listens on that: whoever has opened it has also said who may connect.
 */
export async function listenUnix(path: string, onConnection: (socket: Socket) => void, fd?: number): Promise<Server> {
  const server = createServer(onConnection)
  await listenAt(server, path, fd)
  return server
}

/** The same for a server that is there already, such as one that speaks HTTP. */
export async function listenAt(server: Server, path: string, fd?: number): Promise<void> {
  if (fd !== undefined) return listenOn(server, fd)
  checkSocketPath(path)
  await removeLeftover(path)
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen({ path, backlog }, resolve)
  })
  await chmod(path, 0o600)
}

/** A link goes, and not what it leads to. A folder is nothing that we have made: what is in it is somebody's. */
async function removeLeftover(path: string): Promise<void> {
  if ((await lstat(path).catch(() => undefined))?.isDirectory())
    throw new Fault("conflict", `there is a folder at ${path}, where a socket should be`, { hint: "move it away" })
  await rm(path, { force: true })
}

/** On a socket that was opened before, of whichever kind. */
function listenOn(server: Server, fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen({ fd }, resolve)
  })
}

export function connectUnix(path: string, signal?: AbortSignal): Promise<Socket & Recycling> {
  return new Promise((resolve, reject) => {
    checkSocketPath(path)
    if (signal?.aborted) return reject(signal.reason)
    const socket = connectReading(path)
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

/** Enough for an answer. Each connection keeps one or two of these for as long as it is open. */
const firstReadBytes = 2 * 1024
const largestReadBytes = 256 * 1024
const freeMax = 8

/** A connection that takes back the memory its bytes came in. Who does not give it back leaves it to the garbage collector. */
export interface Recycling {
  /** Nothing of this memory is used any more. */
  recycle(memory: ArrayBufferLike): void
}

export function isRecycling(stream: object): stream is Recycling {
  return "recycle" in stream
}

/**
 * A connection whose reads grow with what comes: small ones for short answers (Node's own are 64 KiB each, filled or not),
 * large ones, and so few, for a flood. Collecting the memory of a flood costs more than reading it, hence `recycle`.
 */
function connectReading(path: string): Socket & Recycling {
  let bytes = firstReadBytes
  let free: Buffer[] = []
  const socket: Socket = connect({
    path,
    onread: {
      buffer: () => free.pop() ?? Buffer.allocUnsafeSlow(bytes),
      callback(count, buffer) {
        if (count === bytes && bytes < largestReadBytes) {
          bytes = Math.min(bytes * 8, largestReadBytes)
          free = []
        }
        return socket.push((buffer as Buffer).subarray(0, count))
      },
    },
  })
  return Object.assign(socket, {
    recycle(memory: ArrayBufferLike) {
      if (memory.byteLength === bytes && free.length < freeMax) free.push(Buffer.from(memory))
    },
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
  if (errnoOf(cause) === "EAGAIN")
    return new Fault("limit", `too many connect to ${path} at once`, { hint: "try again in a moment", cause })
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
