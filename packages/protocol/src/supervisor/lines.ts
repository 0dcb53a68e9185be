import { z } from "zod"

/** Seed 001's conversation with a supervisor on its standard input and output: one JSON object a line. */

const agentConfig = z.object({
  agent_type: z.string().max(64).optional(),
  model: z.string().max(256).optional(),
  allowed_tools: z.array(z.string().max(256)).max(256).optional(),
  disallowed_tools: z.array(z.string().max(256)).max(256).optional(),
  max_turns: z.int().min(1).optional(),
})

export const StdioCommand = z.discriminatedUnion("cmd", [
  z.object({
    cmd: z.literal("start"),
    repo: z
      .string()
      .max(2_048)
      .optional()
      .meta({ description: "`owner/name`, a URL, or nothing: the folder as it is." }),
    branch: z.string().max(256).optional(),
    prompt: z.string().max(1_000_000).default(""),
    agent_config: agentConfig.optional(),
  }),
  z.object({ cmd: z.literal("chat"), text: z.string().max(1_000_000) }),
  z.object({ cmd: z.literal("stop") }),
  z.object({
    cmd: z.literal("exec"),
    id: z.string().min(1).max(128),
    argv: z.array(z.string()).min(1).max(4_096),
    timeoutMs: z.int().min(1).max(3_600_000).default(60_000),
  }),
])
export type StdioCommand = z.output<typeof StdioCommand>

export const ExitReason = z.enum(["exit", "signal", "stopped", "clone", "start"])

export const StdioEvent = z.discriminatedUnion("ev", [
  z.object({ ev: z.literal("system:ready") }),
  z.object({ ev: z.literal("agent:started"), pid: z.int() }),
  z.object({ ev: z.literal("agent:stdout"), data: z.string() }),
  z.object({ ev: z.literal("agent:stderr"), data: z.string() }),
  z.object({
    ev: z.literal("agent:exit"),
    code: z.int().nullable(),
    signal: z.string().nullable(),
    reason: ExitReason,
    message: z.string().optional(),
  }),
  z.object({
    ev: z.literal("exec:result"),
    id: z.string(),
    code: z.int().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    reason: z.enum(["exit", "signal", "timeout", "start", "stopped"]),
    truncated: z.boolean(),
  }),
  z.object({ ev: z.literal("error"), cmd: z.string().nullable(), code: z.string(), message: z.string() }),
])
export type StdioEvent = z.output<typeof StdioEvent>

export const stdioLimits = {
  /** A longer line is answered with an error, and forgotten. */
  lineBytesMax: 4 * 1024 * 1024,
  execOutputBytesMax: 1024 * 1024,
  execsMax: 64,
  chatsWaitingMax: 100,
  /** Output lines longer than this come in pieces. */
  pieceBytesMax: 64 * 1024,
  stopGraceMs: 5_000,
} as const
