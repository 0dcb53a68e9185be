import type { Duplex } from "node:stream"
import { Fault } from "@warren/base/fault.ts"
import { hubLimits } from "./frames.ts"

/** As much of an HTTP request as a WebSocket begins with. */
export interface Upgrade {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

const headBytesMax = 8 * 1024
const end = Buffer.from("\r\n\r\n")

/**
 * Reads the request a WebSocket begins with. By hand, because Node's HTTP server takes over the handle of a socket, and what init has
 * opened has been read from already.
 */
export function readUpgrade(stream: Duplex): Promise<{ readonly request: Upgrade; readonly head: Buffer }> {
  return new Promise((resolve, reject) => {
    let kept = Buffer.alloc(0)
    const timer = setTimeout(() => fail("took too long"), hubLimits.resumeMs)
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      stream.off("data", hear).off("close", gone).off("error", gone).off("end", gone)
      stream.pause()
      act()
    }
    const fail = (why: string): void =>
      settle(() => {
        stream.destroy()
        reject(new Fault("unavailable", `the other end ${why}`))
      })
    const gone = (): void => fail("went away")
    const hear = (piece: Buffer): void => {
      kept = Buffer.concat([kept, piece])
      const at = kept.indexOf(end)
      if (at < 0 && kept.length > headBytesMax) return fail("said something else")
      if (at < 0) return
      const request = parse(kept.subarray(0, at).toString("latin1"))
      if (!request) return fail("said something else")
      settle(() => resolve({ request, head: kept.subarray(at + end.length) }))
    }
    stream.on("data", hear).on("close", gone).on("error", gone).on("end", gone)
    // It may have been paused until somebody reads it.
    stream.resume()
  })
}

function parse(text: string): Upgrade | undefined {
  const [first = "", ...lines] = text.split("\r\n")
  const [method, url, version] = first.split(" ")
  if (method === undefined || url === undefined || version !== "HTTP/1.1") return undefined
  const headers = lines.map((line) => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    line.slice(line.indexOf(":") + 1).trim(),
  ])
  return { method, url, headers: Object.fromEntries(headers) as Record<string, string> }
}
