import { z } from "zod"
import { contract } from "../contract.ts"
import { TurnCause, Usage } from "../hub/words.ts"
import { page, pageInput } from "./page.ts"

const ChatId = z
  .string()
  .max(64)
  .meta({ description: "`main` is the main chat, which every user has.", examples: ["main"] })

export const Chat = z
  .object({
    id: ChatId,
    kind: z.enum(["main", "session"]),
    title: z.string().optional(),
    sessionId: z.string().optional().meta({ description: "The session whose agent speaks here." }),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    lastSeq: z.int().min(0).meta({ description: "The number of the newest thing that happened in it." }),
  })
  .meta({ id: "Chat", description: "A conversation." })

/** New kinds of parts may come: a reader passes over those it does not know. */
export const ChatPart = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text"), text: z.string() }),
    z.object({ type: z.literal("reasoning"), text: z.string() }),
    z.object({
      type: z.literal("tool"),
      callId: z.string(),
      tool: z.string(),
      status: z.enum(["pending", "running", "completed", "error"]),
      args: z.json().optional(),
      result: z.json().optional(),
      error: z.string().optional(),
    }),
    z.object({
      type: z.literal("file"),
      name: z.string(),
      mediaType: z.string(),
      path: z.string().optional().meta({ description: "Where it lies in the session's workspace." }),
      url: z.string().optional(),
    }),
    z.object({ type: z.literal("error"), message: z.string() }),
  ])
  .meta({ id: "ChatPart", description: "A piece of a message." })

export const ChatMessage = z
  .object({
    id: z.string(),
    chatId: ChatId,
    seq: z.int().min(1).meta({ description: "Its place in the chat." }),
    role: z.enum(["user", "assistant", "system"]),
    parts: z.array(ChatPart),
    state: z.enum(["open", "final"]).meta({ description: "`open`: more of it may come." }),
    reason: z.enum(["end_turn", "error", "canceled", "lost"]).optional().meta({ description: "Why it became final." }),
    cause: TurnCause.optional().meta({ description: "Why it is no answer, when it is none." }),
    usage: Usage.optional(),
    promptId: z.string().optional().meta({ description: "The message it answers." }),
    isReverted: z.boolean().optional().meta({ description: "Taken back: it counts as if it had not been said." }),
    createdAt: z.iso.datetime(),
    endedAt: z.iso.datetime().optional().meta({ description: "When the turn was over, of an answer." }),
    changedSeq: z.int().min(1).meta({ description: "The number of the newest change to it." }),
  })
  .meta({ id: "ChatMessage", description: "What one side of a chat said." })

export const chatCalls = contract({
  "chat.list": {
    since: 1,
    scope: "chats:read",
    http: "GET /v1/chats",
    doc: "List chats, the one last spoken in first.",
    in: z.object({ ...pageInput, sessionId: z.string().max(64).optional() }),
    out: page(Chat),
  },
  "chat.get": {
    since: 1,
    scope: "chats:read",
    http: "GET /v1/chats/{id}",
    doc: "Read one chat.",
    in: z.object({ id: ChatId }),
    out: Chat,
  },
  "chat.messages": {
    since: 1,
    scope: "chats:read",
    http: "GET /v1/chats/{id}/messages",
    doc: "Messages of a chat in order: those after a number, those before one, or the newest.",
    in: z
      .object({
        id: ChatId,
        after: z.coerce.number().int().min(0).optional().meta({ description: "Only messages after this `seq`." }),
        before: z.coerce.number().int().min(1).optional().meta({ description: "The last messages before this `seq`." }),
        limit: z.coerce.number().int().min(1).max(200).default(50),
      })
      .refine(({ after, before }) => after === undefined || before === undefined, "give `after` or `before`, not both"),
    out: z.object({
      items: z.array(ChatMessage),
      hasMore: z.boolean().meta({ description: "Whether there are more in the direction that was asked for." }),
    }),
  },
})
