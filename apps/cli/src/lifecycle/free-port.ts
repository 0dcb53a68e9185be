import { once } from "node:events"
import { createServer } from "node:net"
import { errnoOf, Fault } from "@warren/base/fault.ts"

/** Asked before anything is started, so that nothing has to be taken back when another program has the port. */
export async function checkPort(port: number): Promise<void> {
  const server = createServer().listen(port, "127.0.0.1")
  try {
    await once(server, "listening")
  } catch (cause) {
    if (errnoOf(cause) !== "EADDRINUSE") throw new Fault("unavailable", `cannot listen on port ${port}`, { cause })
    throw new Fault("conflict", `port ${port} is taken by another program`, {
      cause,
      hint: "say another with WARREN_PORT, or `port` in runner.toml",
    })
  }
  server.close()
  await once(server, "close")
}
