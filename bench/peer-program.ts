import type { Socket } from "node:net"
import { listenUnix } from "@warren/base/unix-socket.ts"

/** The frame of every peer: listens where it was told, says so, and leaves when whoever started it is gone. */
export async function serve(onConnection: (socket: Socket) => void): Promise<void> {
  process.stdin.resume().once("end", () => process.exit(0))
  // Ctrl-C reaches every process of the terminal; the one that measures decides what happens then.
  process.on("SIGINT", () => undefined)
  await listenUnix(process.argv[2] ?? "", (socket) => {
    socket.on("error", () => socket.destroy())
    onConnection(socket)
  })
  process.stdout.write("listening\n")
}
