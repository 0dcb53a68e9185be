import type { Clock } from "@warren/base/clock.ts"

const lookMs = 20

interface Drainable {
  close(): unknown
  once(event: "close", listener: () => void): unknown
  closeIdleConnections?(): void
}

/**
 * Ends a server in order: nobody new is let in, and what was asked is answered. False when that took longer than it may:
 * then something is left to be cut.
 */
export async function drain(server: Drainable, drainMs: number, clock: Clock): Promise<boolean> {
  let isClosed = false
  server.once("close", () => (isClosed = true))
  server.close()
  const deadline = clock.monotonic() + drainMs
  // Connections that were kept open for another request have to be told, each when its answer is out.
  for (server.closeIdleConnections?.(); !isClosed && clock.monotonic() < deadline; server.closeIdleConnections?.()) {
    await clock.sleep(lookMs)
  }
  return isClosed
}
