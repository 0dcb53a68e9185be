import { faultCodes, type Fault } from "@warren/base/fault.ts"

interface Refusal {
  readonly status: number
  readonly error_code: string
}

/** Sandkasten's codes for what faults are about. */
const bySubject: Readonly<Record<string, Refusal>> = {
  session: { status: 404, error_code: "SESSION_NOT_FOUND" },
  workspace: { status: 404, error_code: "WORKSPACE_NOT_FOUND" },
  image: { status: 400, error_code: "INVALID_IMAGE" },
}
const byCode: Readonly<Partial<Record<Fault["code"], Refusal>>> = {
  unauthenticated: { status: 401, error_code: "UNAUTHORIZED" },
  forbidden: { status: 403, error_code: "UNAUTHORIZED" },
  timeout: { status: 504, error_code: "COMMAND_TIMEOUT" },
  resync: { status: 410, error_code: "SESSION_EXPIRED" },
  invalid: { status: 400, error_code: "INVALID_REQUEST" },
  // A file that is not there is their clients' mistake, not a session that is not there.
  not_found: { status: 400, error_code: "INVALID_REQUEST" },
}

/** A fault as its clients know one. */
export function refusalOf(fault: Fault): { readonly status: number; readonly body: object } {
  const subject = fault.subject?.split(":")[0] ?? ""
  const known = fault.code === "not_found" ? (bySubject[subject] ?? byCode.not_found) : byCode[fault.code]
  const { status, error_code } = known ?? otherwise(fault)
  const details = fault.hint === undefined ? {} : { details: { hint: fault.hint } }
  return { status, body: { error_code, message: fault.message, ...details } }
}

function otherwise({ code }: Fault): Refusal {
  const { status } = faultCodes[code]
  return { status, error_code: status < 500 ? "INVALID_REQUEST" : "INTERNAL_ERROR" }
}
