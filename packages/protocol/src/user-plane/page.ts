import { z } from "zod"

/** Part of a list: pass `nextCursor` back as `cursor` for what follows. */
export const pageInput = {
  cursor: z.string().max(256).optional().meta({ description: "`nextCursor` of the answer before." }),
  limit: z.coerce.number().int().min(1).max(200).default(50),
}

export function page<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().optional() })
}
