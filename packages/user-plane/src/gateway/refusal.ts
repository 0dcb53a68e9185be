import { Fault, faultCodes, type FaultCode } from "@warren/base/fault.ts"

const codes: Readonly<Record<number, FaultCode>> = {
  400: "invalid",
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  405: "unsupported",
  413: "limit",
  421: "invalid",
  429: "limit",
  431: "invalid",
  502: "unavailable",
}

/** A request that is not let in, or that nothing inside can answer: a fault with the status HTTP has for exactly that. */
export class GatewayRefusal extends Fault {
  readonly status: number

  constructor(status: number, message: string, options: ConstructorParameters<typeof Fault>[2] = {}) {
    super(codes[status] ?? "internal", message, options)
    this.status = status
  }
}

/** A program that is not there yet. */
export class NobodyListens extends GatewayRefusal {
  constructor(cause: unknown) {
    super(502, "nothing listens on that port yet", {
      cause,
      hint: "start the program; it may listen on loopback alone",
    })
  }
}

export function statusOf(fault: Fault): number {
  return fault instanceof GatewayRefusal ? fault.status : faultCodes[fault.code].status
}
