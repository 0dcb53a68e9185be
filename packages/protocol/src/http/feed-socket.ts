import { Fault, messageOf } from "@warren/base/fault.ts"
import type { WebSocket } from "ws"
import type { Feed, Numbered } from "../contract.ts"
import { faultTeller, type Asked } from "./asked.ts"
import { upgraded } from "./web-socket.ts"

/**
 * A feed on a WebSocket: each message is `{"seq":…,"item":…}`; at the end it closes with 1000, and after `{"fault":…}` with 1011. For
 * pages: a browser has six connections to a server for all its tabs, and as many WebSockets as it wants.
 */
export async function feedSocket(asked: Asked<Feed>, given: object): Promise<Response> {
  return upgraded(asked.c, (socket) => tell(socket, asked, given))
}

/** Only begins: what waits for the end of a feed may not hold its request, which a suspended function would. */
function tell(socket: WebSocket, asked: Asked<Feed>, given: object): void {
  const gone = new AbortController()
  socket.on("error", () => undefined)
  socket.on("close", () => gone.abort(new Fault("cancelled", "the caller went away")))
  const failed = failureTeller(socket, asked, gone.signal)
  try {
    const items = asked.ask(asked.name, given, { signal: gone.signal }) as Items
    carry(socket, asked.entry, items).then(() => socket.close(1000), failed)
  } catch (thrown) {
    void failed(thrown)
  }
}

type Items = AsyncIterable<Numbered<unknown>>

async function carry(socket: WebSocket, entry: Feed, items: Items): Promise<void> {
  for await (const { seq, item } of items) await send(socket, { seq, item: entry.each.parse(item) })
}

function failureTeller(socket: WebSocket, { c, log }: Asked<Feed>, signal: AbortSignal) {
  const { path } = c.req
  const told = faultTeller(c)
  return async (thrown: unknown): Promise<void> => {
    if (signal.aborted) return
    const fault = Fault.from(thrown)
    if (fault.code === "internal") log("error", "http.bug", { path, message: messageOf(thrown) })
    await send(socket, { fault: told(fault) })
    socket.close(1011)
  }
}

/** Resolves when the kernel has it, and also when it never will: a slow reader holds back only its own feed. */
function send(socket: WebSocket, message: object): Promise<void> {
  return new Promise((resolve) => socket.send(JSON.stringify(message), () => resolve()))
}
