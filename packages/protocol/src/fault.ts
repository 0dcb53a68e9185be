import { faultCodes, type Fault, type FaultCode } from "@warren/base/fault.ts"
import { z } from "zod"

const textCharsMax = 16_384
const subjectCharsMax = 1_024
const codes = Object.keys(faultCodes) as [FaultCode, ...FaultCode[]]

/** A fault on the wire. A code that a newer peer made up reads as `internal`. */
export const FaultData = z
  .object({
    code: z.enum(codes).catch("internal"),
    message: z.string().max(textCharsMax),
    hint: z.string().max(textCharsMax).optional(),
    subject: z.string().max(subjectCharsMax).optional(),
  })
  .meta({ id: "Fault", description: "Why something was refused or failed." })

/** What of a fault goes over a wire: cut to what the other side takes, because a fault must always arrive. */
export function wireFault(fault: Fault): z.output<typeof FaultData> {
  const { code, message, hint, subject } = fault.toData()
  return {
    code,
    message: cut(message, textCharsMax),
    ...(hint === undefined ? {} : { hint: cut(hint, textCharsMax) }),
    ...(subject === undefined ? {} : { subject: cut(subject, subjectCharsMax) }),
  }
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text
}
