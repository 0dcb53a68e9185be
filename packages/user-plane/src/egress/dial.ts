import { connect, type Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { pourable } from "./pour.ts"

/** Connects to an address (never a name: nothing is looked up here). Leaves nothing behind when it fails. */
export function dial(address: string, port: number, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const socket = pourable((more) => connect({ host: address, port, allowHalfOpen: true, noDelay: true, ...more }))
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", abort)
      socket.off("connect", connected).off("error", fail)
      act()
    }
    const fail = (cause: unknown): void =>
      settle(() => {
        socket.on("error", () => undefined)
        socket.destroy()
        reject(cause)
      })
    const abort = (): void => fail(signal.reason)
    const connected = (): void => settle(() => resolve(socket))
    const timer = setTimeout(() => fail(new Fault("timeout", "no answer in time")), timeoutMs)
    signal.addEventListener("abort", abort, { once: true })
    socket.once("connect", connected).once("error", fail)
  })
}
