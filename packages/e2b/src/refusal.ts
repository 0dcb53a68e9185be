import { faultCodes, type Fault, type FaultCode } from "@warren/base/fault.ts"

/** A fault as clients of the control API know one. */
export function apiRefusal(fault: Fault): { readonly code: number; readonly message: string } {
  const { status } = faultCodes[fault.code]
  const hint = fault.hint === undefined ? "" : ` (${fault.hint})`
  // Theirs is one code for what the caller got wrong, whether it is unknown or only not here.
  return { code: fault.code === "unsupported" ? 400 : status, message: fault.message + hint }
}

/** Connect's words for our codes, and the status a single answer has. */
const words: Readonly<Record<FaultCode, readonly [word: string, status: number]>> = {
  invalid: ["invalid_argument", 400],
  unauthenticated: ["unauthenticated", 401],
  forbidden: ["permission_denied", 403],
  not_found: ["not_found", 404],
  conflict: ["already_exists", 409],
  resync: ["data_loss", 500],
  limit: ["resource_exhausted", 429],
  cancelled: ["canceled", 499],
  internal: ["internal", 500],
  unsupported: ["unimplemented", 501],
  unavailable: ["unavailable", 503],
  timeout: ["deadline_exceeded", 504],
}

export function rpcRefusal(fault: Fault): { readonly status: number; readonly error: object } {
  const [code, status] = words[fault.code]
  return { status, error: { code, message: fault.message } }
}
