import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import type { Sandbox } from "../driver.ts"
import { decode, faultOf, Operation } from "./operation.ts"

const lengthBytes = 4
const answerBytesMax = 64 * 1024

/** A connection to what listens inside: its bytes, nothing else. It is paused until somebody reads it. */
export async function connectPort(
  sandbox: Pick<Sandbox, "connect">,
  to: { readonly port: number } | { readonly path: string },
  signal?: AbortSignal,
): Promise<Duplex> {
  const socket = await sandbox.connect(signal)
  const abort = (): void => void socket.destroy()
  signal?.addEventListener("abort", abort, { once: true })
  try {
    socket.write(Operation.request({ op: "connect", ...to }))
    const rest = await opened(socket)
    if (rest.length > 0) socket.unshift(rest)
    return socket
  } catch (failure) {
    socket.destroy()
    signal?.throwIfAborted()
    throw failure
  } finally {
    signal?.removeEventListener("abort", abort)
  }
}

/** Waits for init's one frame; what came behind it belongs to the connection. */
function opened(socket: Duplex): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let kept = Buffer.alloc(0)
    const stop = (settle: () => void): void => {
      socket.pause()
      socket.off("data", hear).off("error", fail).off("close", fail).off("end", fail)
      settle()
    }
    const fail = (): void => stop(() => reject(new Fault("unavailable", "the sandbox closed the connection")))
    const hear = (piece: Buffer): void => {
      kept = Buffer.concat([kept, piece])
      const length = kept.length < lengthBytes ? 0 : kept.readUInt32BE()
      if (length > answerBytesMax)
        return stop(() => reject(new Fault("internal", "init answered connect with something else")))
      if (kept.length < lengthBytes || kept.length < lengthBytes + length) return
      stop(() => {
        try {
          checkOpened(kept.subarray(lengthBytes, lengthBytes + length))
          resolve(kept.subarray(lengthBytes + length))
        } catch (failure) {
          reject(failure)
        }
      })
    }
    socket.on("data", hear).on("error", fail).on("close", fail).on("end", fail)
  })
}

function checkOpened(body: Buffer): void {
  const event = decode(body)
  if (event.ev === "fault") throw faultOf(event)
  if (event.ev !== "ok") throw new Fault("internal", `init answered ${event.ev} to connect`)
}
