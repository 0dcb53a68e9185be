import { z } from "zod"
import { agentTools } from "../hub/tools.ts"

/** A request or a notification of the Model Context Protocol. */
export const McpRequest = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int()]).optional(),
  method: z.string(),
  params: z.record(z.string(), z.json()).optional(),
})
export type McpRequest = z.output<typeof McpRequest>

/** The agent's own tools as `tools/list` shows them. */
export function mcpTools(): unknown[] {
  return Object.entries(agentTools).map(([name, { doc, in: input, out }]) => ({
    ...{ name, description: doc },
    inputSchema: schemaOf(input, "input"),
    outputSchema: schemaOf(out, "output"),
  }))
}

/** Clients want an object at the top: what has a name of its own would be a reference there. */
function schemaOf({ shape }: z.ZodObject, io: "input" | "output"): unknown {
  return z.toJSONSchema(z.object(shape), { io })
}
