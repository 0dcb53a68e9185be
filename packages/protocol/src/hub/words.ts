import { z } from "zod"

/** Seed 003's words for what a supervisor and a hub tell each other, and what both show to clients. */

export const AgentStatus = z.enum(["idle", "thinking", "tool_calling", "streaming", "error"])
export type AgentStatus = z.output<typeof AgentStatus>

export const TurnReason = z.enum(["end_turn", "error", "canceled"])

/** Why a turn ended otherwise than by being answered. Whoever acts on it acts on this, never on the words of a message. */
export const TurnCause = z
  .enum([
    "verdict",
    "transport",
    "cancelled",
    "orphaned",
    "oom",
    "timeout",
    "limit",
    "rate_limit",
    "auth",
    "billing",
    "start",
  ])
  .meta({
    id: "TurnCause",
    description:
      "`verdict`: the agent itself said so. `transport`: it could not be reached. `orphaned`: what drove it died. `start`: it did not start.",
  })
export type TurnCause = z.output<typeof TurnCause>

export const Usage = z
  .object({
    inputTokens: z.int().min(0).optional(),
    outputTokens: z.int().min(0).optional(),
    cacheReadTokens: z.int().min(0).optional(),
    cacheWriteTokens: z.int().min(0).optional(),
    reasoningTokens: z.int().min(0).optional(),
    costUsd: z.number().min(0).optional(),
    durationMs: z.number().min(0).optional(),
    model: z.string().max(256).optional(),
  })
  .meta({ id: "Usage", description: "What a turn took." })
export type Usage = z.output<typeof Usage>

export const ToolStatus = z.enum(["pending", "running", "completed", "error"])

/** `web:default`, `telegram:12345`: whoever speaks there has a conversation of their own. */
export const ChannelKey = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}:[A-Za-z0-9_.@+-]{1,95}$/, "a channel is written like web:default")
  .meta({ id: "ChannelKey", examples: ["web:default", "telegram:12345"] })

export const Attachment = z
  .object({
    type: z.literal("file"),
    mime: z.string().max(128),
    filename: z.string().max(255).optional(),
    url: z
      .string()
      .max(4_096)
      .meta({ description: "Where it is: a path in the sandbox as `file:///workspace/a.png`." }),
  })
  .meta({ id: "Attachment" })

/** Each fits into a frame of the wire with room to spare. */
export const partBytesMax = 64 * 1024
export const promptCharsMax = 200_000
