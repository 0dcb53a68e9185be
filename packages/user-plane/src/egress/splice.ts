import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { pour } from "./pour.ts"

/**
 * Joins a client with the outside until both directions have ended. Each waits for the other to take what it was given; one that
 * says its last leaves the other free to go on; one that breaks takes the other with it. Throws the fault that cut it, if one did.
 */
export async function splice(client: Socket, outside: Socket): Promise<void> {
  const ends = [ended(client, outside), ended(outside, client)]
  if (!client.destroyed && !outside.destroyed) {
    client.pipe(outside)
    pour(outside, client)
  }
  await Promise.all(ends)
  if (outside.errored instanceof Fault) throw outside.errored
}

function ended(from: Socket, to: Socket): Promise<void> {
  return new Promise((resolve) => {
    const close = (): void => {
      if (!from.readableEnded) to.destroy()
      resolve()
    }
    if (from.closed) return close()
    from.on("error", () => to.destroy())
    from.once("close", close)
  })
}
