import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { Fault } from "@warren/base/fault.ts"
import { noticeAnswer } from "./notice.ts"
import { NobodyListens, statusOf } from "./refusal.ts"
import { headText } from "./socket-exchange.ts"

export interface FaultAnswer {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

interface About {
  readonly raw: readonly string[]
  readonly method: string | undefined
  /** Of one that was let in. */
  readonly port?: number | undefined
  readonly framers?: readonly string[]
  readonly said?: readonly string[]
  /** Somebody was not let in: the control plane writes that down, too, and drops the word of it. */
  readonly isRefused?: boolean
}

const titles: Readonly<Record<number, string>> = {
  401: "This is private",
  403: "Not allowed",
  404: "Nothing here",
  409: "The session does not run",
  422: "Not installed",
  502: "The program did not answer",
}

/** What is said in place of a program. It ends the connection: what is left of a request's body would be read as the next request. */
export function faultAnswer(
  fault: Fault,
  { raw, method, port, framers, said = [], isRefused = false }: About,
): FaultAnswer {
  const status = statusOf(fault)
  const isAbsent = fault instanceof NobodyListens
  const title = isAbsent ? `Nothing listens on port ${port} yet` : (titles[status] ?? STATUS_CODES[status] ?? "Refused")
  const isPassing = isAbsent && method === "GET"
  const { headers, body } = noticeAnswer(
    { status, title, text: fault.message, hint: fault.hint, isPassing },
    raw,
    framers,
  )
  const refused = isRefused ? ["X-Warren-Refused", fault.code] : []
  return {
    status,
    headers: [...headers, ...said, ...refused, "Connection", "close"],
    body: method === "HEAD" ? "" : body,
  }
}

/** The same where Node has given up the connection. */
export function sayOn(socket: Duplex, { status, headers, body }: FaultAnswer): void {
  const head = { statusCode: status, statusMessage: STATUS_CODES[status] ?? "" }
  if (!socket.destroyed) socket.end(`${headText(head, headers)}${body}`, () => socket.destroy())
}
