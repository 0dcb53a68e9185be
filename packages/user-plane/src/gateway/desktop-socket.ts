import type { Duplex } from "node:stream"
import { drained } from "@warren/base/drained.ts"
import type { MessageSocket } from "@warren/protocol/http/message-socket.ts"

/** The bytes of a VNC connection as messages, as noVNC wants them: both ways, until either end is gone. */
export async function desktopSocket(client: MessageSocket, desktop: Duplex): Promise<void> {
  desktop.on("error", () => undefined)
  try {
    await Promise.race([down(client, desktop), up(client, desktop)])
  } finally {
    desktop.destroy()
    client.close(1000, "")
  }
}

async function down(client: MessageSocket, desktop: Duplex): Promise<void> {
  for await (const piece of desktop as AsyncIterable<Buffer>) await client.send(piece)
}

async function up(client: MessageSocket, desktop: Duplex): Promise<void> {
  for (let message = await client.next(); message !== undefined; message = await client.next()) {
    if (desktop.destroyed) return
    if (!desktop.write(message)) await drained(desktop)
  }
}
