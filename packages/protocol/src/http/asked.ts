import { randomBytes } from "node:crypto"
import { faultCodes, type Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Context as HonoContext } from "hono"
import type { ContentfulStatusCode } from "hono/utils/http-status"
import type { Entry } from "../contract.ts"
import { wireFault } from "../fault.ts"

/** One request on its way to its handler. */
export interface Asked<E extends Entry> {
  readonly c: HonoContext
  readonly entry: E
  readonly log: Log
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal
  /** Asks the handler of an entry; the input is checked by that entry first. */
  ask(name: string, input: object, how?: How): unknown
  /** The name of this entry. */
  readonly name: string
}

interface How {
  /** The request's unless given. */
  readonly signal?: AbortSignal
  readonly collects?: boolean
}

/** Faults as they are told on a socket, with what it takes to find them in a log. */
export function faultTeller(c: HonoContext): (fault: Fault) => ReturnType<typeof wireFault> & { requestId?: string } {
  const requestId = c.get("requestId") as string | undefined
  return (fault) => ({ ...wireFault(fault), ...(requestId === undefined ? {} : { requestId }) })
}

export function respond(c: HonoContext, fault: Fault, status: number = faultCodes[fault.code].status): Response {
  // Whoever serves these routes may have given the request an id already.
  const requestId = (c.get("requestId") as string | undefined) ?? `req_${randomBytes(10).toString("hex")}`
  const body = { error: { ...fault.toData(), requestId } }
  return c.json(body, status as ContentfulStatusCode, { "x-request-id": requestId })
}
