import { once } from "node:events"
import type { Socket } from "node:net"
import { closeServer, connectUnix, listenUnix } from "../unix-socket.ts"
import { TempFolder } from "./temp-folder.ts"

/** Two ends of a real Unix socket. */
export class SocketPair implements AsyncDisposable {
  readonly left: Socket
  readonly right: Socket

  private constructor(left: Socket, right: Socket) {
    this.left = left
    this.right = right
  }

  static async make(): Promise<SocketPair> {
    await using folder = await TempFolder.make()
    const accepted: Socket[] = []
    const server = await listenUnix(folder.at("pair.sock"), (socket) => accepted.push(socket))
    const connection = once(server, "connection")
    const left = await connectUnix(folder.at("pair.sock"))
    await connection
    // The listener ends when the pair does; nobody else can find it by then.
    const [right] = accepted
    if (!right) throw new Error("nobody was accepted")
    right.once("close", () => void closeServer(server, []))
    return new SocketPair(left, right)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.left, this.right].map(close))
  }
}

async function close(socket: Socket): Promise<void> {
  if (socket.closed) return
  const closed = once(socket, "close")
  socket.destroy()
  await closed
}
