import type { Clock } from "@warren/base/clock.ts"
import type { Metrics } from "./observe/metrics.ts"

const lookMs = 20

interface Drainable {
  close(): unknown
  closeIdleConnections?(): void
  closeAllConnections?(): void
}

/**
 * Ends a server in order: nobody new is let in, what was asked is answered, and after a while what is left is cut: feeds
 * and streams go on for ever, and their readers come back with `after`.
 */
export async function drain(server: Drainable, metrics: Metrics, drainMs: number, clock: Clock): Promise<void> {
  const gone = new Promise<void>((resolve) => (server as unknown as NodeJS.EventEmitter).once("close", resolve))
  server.close()
  const deadline = clock.monotonic() + drainMs
  while (metrics.inFlight > 0 && clock.monotonic() < deadline) {
    server.closeIdleConnections?.()
    await clock.sleep(lookMs)
  }
  server.closeIdleConnections?.()
  server.closeAllConnections?.()
  await gone
}
