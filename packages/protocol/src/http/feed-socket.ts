import { Fault, messageOf } from "@warren/base/fault.ts"
import type { WebSocket } from "ws"
import type { Feed, Numbered } from "../contract.ts"
import { faultTeller, type Asked } from "./asked.ts"
import { upgraded } from "./web-socket.ts"

const heartbeatMs = 15_000

/**
 * A feed on a WebSocket: each message is `{"seq":…,"item":…}`; at the end it closes with 1000, and after `{"fault":…}` with 1011. For
 * pages: a browser has six connections to a server for all its tabs, and as many WebSockets as it wants.
 */
export async function feedSocket(asked: Asked<Feed>, given: object): Promise<Response> {
  return upgraded(asked.c, (socket) => void tell(socket, asked, given))
}

async function tell(socket: WebSocket, { entry, ask, name, log, c }: Asked<Feed>, given: object): Promise<void> {
  const gone = new AbortController()
  const told = faultTeller(c)
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
    await send(socket, { fault: told(fault) })
    socket.close(1011)
  }
}

/** Resolves when the kernel has it, and also when it never will: a slow reader holds back only its own feed. */
function send(socket: WebSocket, message: object): Promise<void> {
  return new Promise((resolve) => socket.send(JSON.stringify(message), () => resolve()))
}
