import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Context as HonoContext } from "hono"
import { streamSSE, type SSEMessage } from "hono/streaming"
import type { Feed, Numbered } from "../contract.ts"
import type { Asked } from "./asked.ts"

const heartbeatMs = 15_000

/** False when nobody reads any more. Waits while the reader does not take more. */
type Send = (event: SSEMessage) => Promise<boolean>

/** Server-sent events: what `tell` sends, then `end` or `fault`. */
export function events(c: HonoContext, log: Log, tell: (send: Send) => Promise<void>): Response {
  return streamSSE(c, async (sse) => {
    const heartbeat = setInterval(() => void sse.write(": still here\n\n"), heartbeatMs)
    try {
      await tell(async (event) => {
        if (!sse.aborted) await sse.writeSSE(event)
        return !sse.aborted
      })
      await sse.writeSSE({ event: "end", data: "{}" })
    } catch (thrown) {
      const fault = Fault.from(thrown)
      if (fault.code === "internal") log("error", "http.bug", { path: c.req.path, message: messageOf(thrown) })
      await sse.writeSSE({ event: "fault", data: JSON.stringify(fault.toData()) })
    } finally {
      clearInterval(heartbeat)
    }
  })
}

export function feedEvents({ c, entry, log }: Asked<Feed>, items: AsyncIterable<Numbered<unknown>>): Response {
  return events(c, log, async (send) => {
    for await (const { seq, item } of items) {
      const data = JSON.stringify(entry.each.parse(item))
      if (!(await send({ id: String(seq), event: "item", data }))) return
    }
  })
}
