import { z } from "zod"

/** What programs in a sandbox say to the door of its agent's tools, and what they are told: one JSON object a line. */
const Id = z.union([z.string().max(128), z.int()])

export const ToolAsked = z.object({ id: Id, tool: z.string().max(64), input: z.json().default({}) })
export type ToolAsked = z.output<typeof ToolAsked>

export const ToolAnswered = z.object({
  id: Id.optional(),
  out: z.json().optional(),
  fault: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }).optional(),
})
export type ToolAnswered = z.output<typeof ToolAnswered>
