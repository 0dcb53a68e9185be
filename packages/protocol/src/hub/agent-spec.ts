import { z } from "zod"

const Program = {
  cmd: z.string().min(1).max(4_095),
  args: z.array(z.string().max(100_000)).max(256).default([]),
  env: z.record(z.string().max(256), z.string().max(32_768)).default({}),
  cwd: z.string().max(4_095).optional(),
}

/** Which agent, and how it is driven. New kinds may come; a supervisor refuses those it does not know. */
export const AgentSpec = z
  .discriminatedUnion("adapter", [
    z.object({
      adapter: z.literal("scripted"),
      cwd: z.string().max(4_095).optional(),
    }),
    z.object({
      adapter: z.literal("command"),
      ...Program,
      speaks: z.enum(["lines", "stream-json"]).default("lines").meta({
        description:
          "`lines`: started for each prompt, which is its last argument; what it prints is the answer. `stream-json`: lives on, as Claude Code with `--input-format stream-json --output-format stream-json`.",
      }),
      permissions: z
        .enum(["allow", "ask"])
        .default("allow")
        .meta({ description: "What becomes of a tool it asks permission for; the sandbox is the wall, so `allow`." }),
    }),
  ])
  .meta({ id: "AgentSpec" })
export type AgentSpec = z.output<typeof AgentSpec>
