import { faultCodes, type FaultCode } from "@warren/base/fault.ts"
import { isFeed, isStream } from "@warren/protocol/contract.ts"
import { publicCalls } from "@warren/protocol/control-plane.ts"
import { WebSocket } from "ws"
import type { Asking } from "./requests.ts"
import type { Row } from "./rows.ts"

export interface Answered {
  /** What it comes to: a feed that begins with a fault has its status, though HTTP said 200 long before. */
  readonly status: number
  readonly text: string
}

const answerMs = 60_000
/** A feed that has nothing to say says nothing: it is not waited for. */
const silenceMs = 300
const textCharsMax = 1_000_000

/** The public door, asked as programs ask it, by request and by WebSocket. */
export class Asker {
  readonly #port: number
  asked = 0

  constructor(port: number) {
    this.#port = port
  }

  async ask(row: Row, asking: Asking, headers: Readonly<Record<string, string>>): Promise<Answered> {
    // Nothing is waited for where it may be that there is nothing to say.
    const waitMs = row.about === "own" ? silenceMs : answerMs
    if (row.isSocket) return this.#socket(asking, headers, waitMs)
    this.asked++
    const init = { method: row.method, headers, signal: AbortSignal.timeout(answerMs) }
    const form = asking.form === undefined ? {} : { body: asking.form }
    const body = asking.body === undefined ? form : { body: asking.body }
    const answer = await fetch(`http://localhost:${this.#port}${asking.path}`, { ...init, ...body })
    const text = await beginningOf(answer, waitMs)
    return { status: toldFault(text) ?? answer.status, text }
  }

  /** What a WebSocket is told, up to its end or its first word. */
  #socket({ path, body }: Asking, headers: Readonly<Record<string, string>>, waitMs: number): Promise<Answered> {
    this.asked++
    return new Promise((settle, reject) => {
      const socket = new WebSocket(`ws://localhost:${this.#port}${path}`, { headers, handshakeTimeout: answerMs })
      const over = (status: number, text: string): void => {
        socket.terminate()
        settle({ status, text })
      }
      socket.on("unexpected-response", (_, { statusCode = 0 }) => over(statusCode, ""))
      socket.on("open", () => {
        socket.send(body ?? "{}")
        setTimeout(() => over(101, ""), waitMs).unref()
      })
      socket.on("message", (data: Buffer) => over(toldFault(data.toString()) ?? 200, data.toString()))
      socket.on("close", (code) => over(code === 1000 ? 200 : 400, ""))
      socket.on("error", (failure) =>
        /Unexpected server response/.test(failure.message) ? undefined : reject(failure),
      )
    })
  }
}

/** Routes that are WebSockets, too. */
export function socketsAmong(table: readonly Row[]): Row[] {
  const found = Object.values(publicCalls).flatMap((entry) => {
    const http = "http" in entry ? (entry.http as string) : ""
    const isSocket = isStream(entry) ? (entry.body as string) !== "bytes" : isFeed(entry)
    return isSocket ? [http.split(" ")[1]] : []
  })
  const paths = new Set(found)
  return table
    .filter(({ method, path }) => method === "GET" && paths.has(path))
    .map((row) => ({ ...row, isSocket: true }))
}

async function beginningOf(answer: Response, waitMs: number): Promise<string> {
  const reader = answer.body?.getReader()
  const isFeed = answer.headers.get("content-type")?.startsWith("text/event-stream") ?? false
  let text = ""
  while (reader && text.length < textCharsMax) {
    const next: Promise<{ done: boolean; value?: Uint8Array | undefined }> = reader.read()
    const { done, value } = await (isFeed ? Promise.race([next, silence(waitMs)]) : next)
    if (done) break
    text += Buffer.from(value ?? []).toString("latin1")
    if (isFeed && text.includes("\n\n")) break
  }
  await reader?.cancel()
  return text
}

function silence(ms: number): Promise<{ done: true; value: undefined }> {
  return new Promise((resolve) => setTimeout(() => resolve({ done: true, value: undefined }), ms).unref())
}

/** The status of a fault that was told where a status could not be. */
function toldFault(text: string): number | undefined {
  const isTold = /^event: (fault|error)/.test(text) || text.startsWith('{"fault"')
  if (!isTold) return undefined
  const code = /"code":"(\w+)"/.exec(text)?.[1] ?? (text.includes("needs the scope") ? "forbidden" : "not_found")
  return faultCodes[code as FaultCode]?.status
}
