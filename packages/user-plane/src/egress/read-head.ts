import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { Denied } from "./denied.ts"

export interface Head<T> {
  readonly value: T
  /** How many bytes belong to it; the rest stays to be read. */
  readonly used: number
}

/**
 * Reads the beginning of what a socket says, and not a byte more: `parse` sees everything that came so far, and answers when that is
 * enough. The socket is left paused.
 */
export function readHead<T>(
  socket: Socket,
  bytesMax: number,
  parse: (bytes: Buffer) => Head<T> | undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0)
    const settle = (act: () => void): void => {
      socket.pause()
      socket.off("data", take).off("end", end).off("close", end)
      act()
    }
    const take = (chunk: Buffer): void => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      try {
        const head = parse(bytes)
        if (head) settle(() => resolve(rest(socket, bytes, head)))
        else if (bytes.length > bytesMax) throw new Denied("bad-request", `more than ${bytesMax} bytes of greeting`)
      } catch (thrown) {
        settle(() => reject(thrown))
      }
    }
    const end = (): void => settle(() => reject(new Fault("cancelled", "the sandbox hung up")))
    if (socket.destroyed || socket.readableEnded) return end()
    socket.on("data", take).once("end", end).once("close", end)
    socket.resume()
  })
}

function rest<T>(socket: Socket, bytes: Buffer, head: Head<T>): T {
  if (head.used < bytes.length) socket.unshift(bytes.subarray(head.used))
  return head.value
}
