import { z } from "zod"

export const Degraded = z
  .object({ code: z.string(), detail: z.string() })
  .meta({ id: "Degraded", description: "Something that was wanted and is not available here." })
