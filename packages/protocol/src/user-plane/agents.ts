import { z } from "zod"
import { contract } from "../contract.ts"
import { AgentSpec } from "../hub/agent-spec.ts"
import { AgentStatus, Attachment, ChannelKey, promptCharsMax, TurnCause } from "../hub/words.ts"
import { ChatMessage, ChatPart } from "./chat.ts"
import { FileName, InlineFile, Provisioned, ProvisionProgress, provisionWishes } from "./provision.ts"

const Which = z.string().min(1).max(128).meta({ description: "The session's id or its name." })
const MessageId = z.string().min(1).max(64)

export const Question = z
  .object({
    id: z.string(),
    chatId: z.string(),
    text: z.string(),
    options: z.array(z.string()).optional(),
    askedAt: z.iso.datetime(),
  })
  .meta({ id: "Question", description: "Something an agent wants to know." })

export const QueuedPrompt = z
  .object({
    messageId: z.string(),
    channel: ChannelKey,
    chatId: z.string(),
    mode: z.enum(["followup", "steer", "collect"]),
    state: z.enum(["queued", "sent", "done"]).meta({ description: "`sent`: the agent works on it." }),
    cause: TurnCause.optional(),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: "QueuedPrompt" })

export const Agent = z
  .object({
    session: z.string(),
    adapter: z.string(),
    status: AgentStatus,
    detail: z.string().optional(),
    isConnected: z.boolean().meta({ description: "Whether the one who drives it is there right now." }),
    models: z.array(z.string()),
    channels: z.array(z.object({ channel: ChannelKey, chatId: z.string() })),
    prompts: z.array(QueuedPrompt).meta({ description: "What waits, and what is worked on." }),
    questions: z.array(Question),
    provisioned: Provisioned.optional().meta({ description: "Absent until it has been." }),
    feedSeq: z.int().min(0).meta({ description: "The number of the newest item of the session's feed." }),
  })
  .meta({ id: "Agent", description: "The agent of a session, as it is now." })

const InChat = {
  chatId: z.string(),
  messageId: z.string(),
  seq: z.int().meta({ description: "Its number in the chat: what a message with this `changedSeq` already has." }),
}

/** New kinds of items may come: a reader passes over those it does not know. */
export const FeedItem = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("message.create"), message: ChatMessage }),
    z.object({
      type: z.literal("message.part.text-delta"),
      ...InChat,
      part: z.enum(["text", "reasoning"]),
      delta: z.string(),
    }),
    z.object({ type: z.literal("message.part.tool-update"), ...InChat, part: ChatPart }),
    z.object({ type: z.literal("message.finalize"), message: ChatMessage }),
    z.object({ type: z.literal("message.reverted"), chatId: z.string(), messageIds: z.array(z.string()) }),
    z.object({ type: z.literal("prompt"), prompt: QueuedPrompt }),
    z.object({ type: z.literal("agent.status"), status: AgentStatus, detail: z.string().optional() }),
    z.object({ type: z.literal("question"), question: Question }),
    z.object({ type: z.literal("question.closed"), id: z.string(), answer: z.string().optional() }),
    z.object({ type: z.literal("title"), chatId: z.string(), title: z.string() }),
    z.object({ type: z.literal("models"), models: z.array(z.string()) }),
    z.object({ type: z.literal("model.switched"), from: z.string(), to: z.string(), cause: TurnCause }),
    z.object({ type: z.literal("files.changed"), paths: z.array(z.string()) }),
    z.object({
      type: z.literal("git.state"),
      branch: z.string().optional(),
      commit: z.string().optional(),
      isDirty: z.boolean().optional(),
    }),
    z.object({ type: z.literal("provision"), ...ProvisionProgress.shape }),
    z.object({ type: z.literal("error"), message: z.string(), code: z.string().optional() }),
  ])
  .meta({ id: "FeedItem", description: "Something that happened with the agent of a session." })

const PromptAttachment = z
  .union([
    Attachment.extend({ filename: FileName.optional() }),
    InlineFile.extend({ type: z.literal("file") }).meta({ id: "InlineAttachment" }),
  ])
  .meta({
    description:
      "A file that lies in the sandbox, or the bytes of a small one. Speech is written down where the runner can.",
  })

const channel = ChannelKey.default("web:default")
const done = z.object({ ok: z.literal(true) })

export const agentCalls = contract({
  "agent.start": {
    since: 1,
    scope: "exec",
    http: "POST /v1/sessions/{session}/agent",
    doc: "Give a session an agent, and what it needs to begin; another one than before replaces it. It is ready when this answers; each step on the way is in the session's feed.",
    in: z.object({ session: Which, spec: AgentSpec, ...provisionWishes }),
    out: Agent,
    timeoutMs: 1_800_000,
  },
  "agent.get": {
    since: 1,
    scope: "chats:read",
    http: "GET /v1/sessions/{session}/agent",
    doc: "The agent of a session as it is now.",
    in: z.object({ session: Which }),
    out: Agent,
  },
  "agent.stop": {
    since: 1,
    scope: "exec",
    http: "DELETE /v1/sessions/{session}/agent",
    doc: "End the agent. What it was doing and what waited for it ends as canceled; what was said stays.",
    in: z.object({ session: Which }),
    out: done,
    timeoutMs: 60_000,
  },
  "agent.prompt": {
    since: 1,
    scope: "chats:write",
    http: "POST /v1/sessions/{session}/agent/prompts",
    doc: "Say something to the agent. It is stored when this answers; what comes of it is in the session's feed.",
    in: z.object({
      session: Which,
      text: z.string().min(1).max(promptCharsMax),
      channel,
      mode: z.enum(["followup", "steer", "collect"]).default("followup").meta({
        description:
          "`followup` waits for its turn. `steer` aborts what runs and comes next. `collect` waits a moment for more of its kind and is sent with it.",
      }),
      messageId: MessageId.optional().meta({ description: "Yours: the same one twice is one prompt." }),
      model: z.string().max(256).optional(),
      attachments: z.array(PromptAttachment).max(16).optional(),
    }),
    out: QueuedPrompt,
    timeoutMs: 180_000,
  },
  "agent.answer": {
    since: 1,
    scope: "chats:write",
    http: "POST /v1/sessions/{session}/agent/questions/{questionId}",
    doc: "Answer a question of the agent.",
    in: z.object({ session: Which, questionId: z.string().max(128), answer: z.string().max(promptCharsMax) }),
    out: done,
  },
  "agent.abort": {
    since: 1,
    scope: "chats:write",
    http: "POST /v1/sessions/{session}/agent/abort",
    doc: "End what the agent does now; with `queued`, also what waits. The next prompt works.",
    in: z.object({ session: Which, queued: z.boolean().default(false) }),
    out: z.object({ aborted: z.array(z.string()).meta({ description: "The prompts, by `messageId`." }) }),
  },
  "agent.revert": {
    since: 1,
    scope: "chats:write",
    http: "POST /v1/sessions/{session}/agent/revert",
    doc: "Take back a message and everything after it in its channel. The agent forgets it where it can; files stay as they are.",
    in: z.object({ session: Which, messageId: MessageId, channel }),
    out: z.object({ messageIds: z.array(z.string()) }),
  },
  "agent.renew": {
    since: 1,
    scope: "chats:write",
    http: "POST /v1/sessions/{session}/agent/renew",
    doc: "Begin a new conversation in a channel; the old one stays to be read.",
    in: z.object({ session: Which, channel }),
    out: z.object({ chatId: z.string() }),
  },
  "session.feed": {
    since: 1,
    scope: "chats:read",
    http: "GET /v1/sessions/{id}/feed",
    doc: "Everything that happened with the session's agent after number `after`, then everything that happens next. `resync`: read `agent.get` and the chats, and continue after its `feedSeq`.",
    in: z.object({ id: Which, after: z.coerce.number().int().min(0).default(0) }),
    each: FeedItem,
  },
})
