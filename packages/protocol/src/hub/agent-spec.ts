import { z } from "zod"

const Place = {
  env: z.record(z.string().max(256), z.string().max(32_768)).default({}),
  cwd: z.string().max(4_095).optional(),
}
const Program = {
  cmd: z.string().min(1).max(4_095),
  args: z.array(z.string().max(100_000)).max(256).default([]),
  ...Place,
}

/** What becomes of a tool that an agent asks permission for. */
const Policy = z.enum(["allow", "ask", "deny"])
export type Policy = z.output<typeof Policy>
const permissions = Policy.default("allow").meta({
  description:
    "What becomes of a tool it asks permission for: the sandbox is the wall, so `allow`; `ask` makes it a question.",
})

const OpenCodeSpec = z.object({
  adapter: z.literal("opencode"),
  cmd: z.string().min(1).max(4_095).default("opencode"),
  ...Place,
  models: z
    .array(z.string().regex(/^[\w.-]+\/.{1,200}$/, "a model is written like openai/gpt-5"))
    .max(16)
    .default([])
    .meta({
      description: "The first is used; each of the others when the one before it fails for lack of access or time.",
    }),
  providers: z
    .record(
      z.string().regex(/^[\w.-]{1,64}$/),
      z.object({
        speaks: z
          .enum(["openai", "openai-chat", "anthropic"])
          .meta({ description: "OpenAI's responses, its older chat completions, or Anthropic's messages." }),
        baseUrl: z.string().max(2_048).optional(),
        keyVariable: z
          .string()
          .regex(/^\w{1,128}$/)
          .optional()
          .meta({ description: "The variable of its environment that holds the key; a key itself is never written." }),
      }),
    )
    .default({})
    .meta({ description: "Where models are, besides `openai` and `anthropic`, which the leases of the session name." }),
  permissions: z
    .union([Policy, z.record(z.string().max(128), Policy)])
    .default("allow")
    .meta({ description: "As a whole, or by OpenCode's names: `bash`, `edit`, `webfetch`, …; `*` is all others." }),
  instructions: z.string().max(100_000).optional().meta({ description: "What it is told besides the prompts." }),
  config: z
    .record(z.string().max(128), z.json())
    .default({})
    .meta({ description: "More of OpenCode's own configuration; it wins over what is made of the other fields." }),
  silenceMs: z
    .int()
    .min(1_000)
    .max(3_600_000)
    .default(300_000)
    .meta({ description: "How long a model may say nothing before it counts as failed with `timeout`." }),
})

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
      speaks: z.enum(["lines", "stream-json", "claude"]).default("lines").meta({
        description:
          "`lines`: started for each prompt, which is its last argument; what it prints is the answer. `stream-json`: lives on, as Claude Code with `--input-format stream-json --output-format stream-json`. `claude`: Claude Code, which is given the arguments for that.",
      }),
      permissions,
    }),
    z.object({ adapter: z.literal("acp"), ...Program, permissions }),
    OpenCodeSpec,
  ])
  .meta({ id: "AgentSpec" })
export type AgentSpec = z.output<typeof AgentSpec>
