import { upgradeWebSocket } from "@hono/node-server"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { WebSocket } from "ws"
import type { Feed, Numbered } from "../contract.ts"
import { toldFault, type Asked } from "./asked.ts"

const heartbeatMs = 15_000

/**
 * A feed on a WebSocket: each message is `{"seq":…,"item":…}`; at the end it closes with 1000, and after `{"fault":…}` with 1011. For
 * pages: a browser has six connections to a server for all its tabs, and as many WebSockets as it wants.
 */
export async function feedSocket(asked: Asked<Feed>, given: object): Promise<Response> {
  const upgrade = upgradeWebSocket(() => ({
    onOpen: (_, { raw }) => void tell(raw as unknown as WebSocket, asked, given),
  }))
  const response = await upgrade(asked.c as Parameters<typeof upgrade>[0], () => Promise.resolve())
  return response ?? new Response(null, { status: 426 })
}

async function tell(socket: WebSocket, { entry, ask, name, log, c }: Asked<Feed>, given: object): Promise<void> {
  const gone = new AbortController()
  const heartbeat = setInterval(() => socket.ping(), heartbeatMs)
  socket.on("error", () => undefined)
  socket.on("close", () => {
    clearInterval(heartbeat)
    gone.abort(new Fault("cancelled", "the caller went away"))
  })
  try {
    for await (const { seq, item } of ask(name, given, { signal: gone.signal }) as AsyncIterable<Numbered<unknown>>)
      await send(socket, { seq, item: entry.each.parse(item) })
    socket.close(1000)
  } catch (thrown) {
    if (gone.signal.aborted) return
    const fault = Fault.from(thrown)
    if (fault.code === "internal") log("error", "http.bug", { path: c.req.path, message: messageOf(thrown) })
    await send(socket, { fault: toldFault(c, fault) })
    socket.close(1011)
  }
}

/** Resolves when the kernel has it, and also when it never will: a slow reader holds back only its own feed. */
function send(socket: WebSocket, message: object): Promise<void> {
  return new Promise((resolve) => socket.send(JSON.stringify(message), () => resolve()))
}
