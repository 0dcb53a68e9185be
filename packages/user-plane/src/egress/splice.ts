import type { Socket } from "node:net"

/**
 * Joins two sockets until both directions have ended. Each waits for the other to take what it was given; one that says its last
 * leaves the other free to go on; one that breaks takes the other with it.
 */
export function splice(left: Socket, right: Socket): Promise<void> {
  return new Promise((resolve) => {
    let open = 2
    const join = (from: Socket, to: Socket): void => {
      from.on("error", () => to.destroy())
      from.once("close", () => {
        if (!from.readableEnded) to.destroy()
        if (--open === 0) resolve()
      })
      from.pipe(to)
      if (from.destroyed) to.destroy()
    }
    join(left, right)
    join(right, left)
    if (left.destroyed && right.destroyed) resolve()
  })
}
