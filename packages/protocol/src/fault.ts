import { faultCodes, type FaultCode } from "@warren/base/fault.ts"
import { z } from "zod"

const codes = Object.keys(faultCodes) as [FaultCode, ...FaultCode[]]

/** A fault on the wire. A code that a newer peer made up reads as `internal`. */
export const FaultData = z
  .object({
    code: z.enum(codes).catch("internal"),
    message: z.string().max(16_384),
    hint: z.string().max(16_384).optional(),
    subject: z.string().max(1_024).optional(),
  })
  .meta({ id: "Fault", description: "Why something was refused or failed." })
