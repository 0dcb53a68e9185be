import { z } from "zod"
import { AgentSpec } from "./agent-spec.ts"
import {
  AgentStatus,
  Attachment,
  ChannelKey,
  partBytesMax,
  promptCharsMax,
  ToolStatus,
  TurnCause,
  TurnReason,
  Usage,
} from "./words.ts"

const Id = z.string().min(1).max(128)
const channel = { channel: ChannelKey }

/** What a hub tells a supervisor. */
export const HubDown = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("prompt"),
    messageId: Id,
    ...channel,
    content: z.string().max(promptCharsMax),
    model: z.string().max(256).optional(),
    modelPreferences: z.array(z.string().max(256)).max(16).optional(),
    attachments: z.array(Attachment).max(16).optional(),
    authorName: z.string().max(256).optional(),
    authorEmail: z.string().max(256).optional(),
  }),
  z.object({ type: z.literal("answer"), questionId: Id, answer: z.string().max(promptCharsMax) }),
  z.object({ type: z.literal("abort"), messageId: Id.optional().meta({ description: "Only this prompt's turn." }) }),
  z.object({ type: z.literal("revert"), messageId: Id, ...channel }),
  z.object({ type: z.literal("new-session"), ...channel }),
  /** Another configuration for the agent that runs: between turns, and with what it remembers. */
  z.object({ type: z.literal("opencode-config"), spec: AgentSpec }),
  z.object({
    type: z.literal("tool-result"),
    requestId: Id,
    out: z.json().optional(),
    fault: z.object({ code: z.string().max(64), message: z.string(), hint: z.string().optional() }).optional(),
  }),
  z.object({ type: z.literal("stop") }),
])
export type HubDown = z.output<typeof HubDown>

/** What a supervisor tells a hub. `turnId` is the id of the message the agent speaks in. */
export const HubUp = z.discriminatedUnion("type", [
  z.object({ type: z.literal("message.create"), turnId: Id, messageId: Id }),
  z.object({
    type: z.literal("message.part.text-delta"),
    turnId: Id,
    delta: z.string().max(partBytesMax),
    part: z.enum(["text", "reasoning"]).optional(),
  }),
  z.object({
    type: z.literal("message.part.tool-update"),
    turnId: Id,
    callId: Id,
    toolName: z.string().max(256),
    status: ToolStatus,
    args: z.json().optional(),
    result: z.json().optional(),
    error: z.string().optional(),
  }),
  z.object({
    type: z.literal("message.finalize"),
    turnId: Id,
    messageId: Id,
    reason: TurnReason,
    cause: TurnCause.optional(),
    error: z.string().optional(),
    usage: Usage.optional(),
  }),
  z.object({
    type: z.literal("question"),
    questionId: Id,
    turnId: Id,
    text: z.string().max(promptCharsMax),
    options: z.array(z.string().max(1_024)).max(32).optional(),
  }),
  z.object({ type: z.literal("agentStatus"), status: AgentStatus, detail: z.string().max(1_024).optional() }),
  z.object({ type: z.literal("title"), ...channel, title: z.string().max(256) }),
  z.object({ type: z.literal("models"), models: z.array(z.string().max(256)).max(1_000) }),
  z.object({
    type: z.literal("model-switched"),
    messageId: Id,
    from: z.string().max(256),
    to: z.string().max(256),
    cause: TurnCause,
  }),
  z.object({ type: z.literal("files-changed"), paths: z.array(z.string().max(4_095)).max(1_000) }),
  z.object({
    type: z.literal("git-state"),
    branch: z.string().max(256).optional(),
    commit: z.string().max(64).optional(),
    dirty: z.boolean().optional(),
  }),
  z.object({ type: z.literal("tool-call"), requestId: Id, tool: z.string().max(64), input: z.json() }),
  z.object({ type: z.literal("error"), message: z.string().max(8_192), code: z.string().max(64).optional() }),
])
export type HubUp = z.output<typeof HubUp>

/** What a supervisor really has under way: said with each heartbeat and each resume, so that nobody has to guess. */
export const ProcessTruth = z.object({
  turns: z.array(Id).max(1_000).meta({ description: "The prompts it works on, by `messageId`." }),
  agent: z.enum(["none", "starting", "ready", "failed"]),
})
export type ProcessTruth = z.output<typeof ProcessTruth>
