import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { NamedError } from "./events.ts"

export interface Failure {
  readonly cause: TurnCause
  readonly message: string
}

const byStatus: Readonly<Record<number, TurnCause>> = {
  401: "auth",
  402: "billing",
  403: "auth",
  408: "timeout",
  429: "rate_limit",
  504: "timeout",
  529: "rate_limit",
}
const byName: Readonly<Record<string, TurnCause>> = {
  ProviderAuthError: "auth",
  MessageOutputLengthError: "limit",
  ContextOverflowError: "limit",
}
/** With another model these may go better; a verdict would be the same. */
const worthAnother: ReadonlySet<TurnCause> = new Set(["rate_limit", "auth", "billing", "timeout", "transport"])

export function isWorthAnother(cause: TurnCause | undefined): boolean {
  return cause !== undefined && worthAnother.has(cause)
}

/** What OpenCode says went wrong, in our words. */
export function failureOf({ name, data = {} }: NamedError): Failure {
  const { message, statusCode, responseBody } = data
  const said = typeof message === "string" && message !== "" ? message : name
  const status = typeof statusCode === "number" ? statusCode : 0
  // An account without money is answered as if it asked too often.
  if (status === 429 && isAboutMoney(`${said} ${String(responseBody)}`)) return { cause: "billing", message: said }
  const cause = byStatus[status] ?? byName[name] ?? (status >= 500 ? "transport" : undefined)
  return { cause: cause ?? "verdict", message: said }
}

/** While OpenCode tries again by itself it tells only a message: the one place where words have to do. */
export function retryFailure(message: string): Failure {
  if (isAboutMoney(message)) return { cause: "billing", message }
  if (/timed? ?out|timeout/i.test(message)) return { cause: "timeout", message }
  if (/connect|reset|socket|network|unavailable|internal server|bad gateway|terminated/i.test(message))
    return { cause: "transport", message }
  return { cause: "rate_limit", message }
}

function isAboutMoney(text: string): boolean {
  return /insufficient_quota|billing|credit|payment/i.test(text)
}
