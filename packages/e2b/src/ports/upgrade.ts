import { STATUS_CODES, type IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { headFor, type Caller, type Ports } from "./ports.ts"

/** An upgrade is passed on as it came; from then on bytes go both ways until either side ends. */
export async function upgraded(
  ports: Ports,
  caller: Caller,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const gone = new AbortController()
  socket.once("close", () => gone.abort(new Error("the caller went away")))
  const stream = await ports.open(caller, gone.signal)
  if (stream instanceof Response) return refuse(socket, stream)
  const lines = [`${caller.method} ${caller.path} HTTP/1.1`]
  const raw = headFor(caller, request.rawHeaders, request.headers.host ?? "", true)
  for (let at = 0; at + 1 < raw.length; at += 2) lines.push(`${raw[at]}: ${raw[at + 1]}`)
  stream.write(`${lines.join("\r\n")}\r\n\r\n`)
  if (head.length > 0) stream.write(head)
  for (const [one, other] of [
    [socket, stream],
    [stream, socket],
  ] as const) {
    one.on("error", () => other.destroy())
    one.once("close", () => other.destroy())
    one.pipe(other)
  }
}

export async function refuse(socket: Duplex, response: Response): Promise<void> {
  const body = await response.text()
  const about = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  socket.end(`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ""}\r\n${about}\r\n\r\n${body}`)
}
