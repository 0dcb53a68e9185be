import { z } from "zod"

/** What OpenCode tells on `/event`, as far as it is understood here. Other fields and kinds pass by. */
const Named = z.object({ name: z.string(), data: z.record(z.string(), z.unknown()).optional() })
export type NamedError = z.output<typeof Named>

const Tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number().optional(),
  cache: z.object({ read: z.number(), write: z.number() }).optional(),
})

const ToolState = z.object({
  status: z.enum(["pending", "running", "completed", "error"]),
  input: z.json().optional(),
  output: z.string().optional(),
  error: z.string().optional(),
})

const Part = z.union([
  z.object({
    type: z.enum(["text", "reasoning"]),
    id: z.string(),
    messageID: z.string(),
    text: z.string(),
    synthetic: z.boolean().optional(),
  }),
  z.object({
    type: z.literal("tool"),
    id: z.string(),
    messageID: z.string(),
    callID: z.string(),
    tool: z.string(),
    state: ToolState,
  }),
  z.object({ type: z.string(), id: z.string(), messageID: z.string() }),
])
export type Part = z.output<typeof Part>

const Info = z.object({
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  providerID: z.string().optional(),
  modelID: z.string().optional(),
  cost: z.number().optional(),
  tokens: Tokens.optional(),
  finish: z.string().optional(),
  time: z.object({ completed: z.number().optional() }).optional(),
  error: Named.optional(),
})
export type Info = z.output<typeof Info>

export const Messages = z.array(z.object({ info: Info, parts: z.array(Part) }))

const Asked = z.object({ question: z.string(), options: z.array(z.object({ label: z.string() })).default([]) })
const SessionInfo = z.object({
  info: z.object({ id: z.string(), parentID: z.string().optional(), title: z.string().optional() }),
})
const inSession = { sessionID: z.string() }

const Event = z.discriminatedUnion("type", [
  z.object({ type: z.literal("server.connected") }),
  z.object({ type: z.literal("session.created"), properties: SessionInfo }),
  z.object({ type: z.literal("session.updated"), properties: SessionInfo }),
  z.object({ type: z.literal("message.updated"), properties: z.object({ ...inSession, info: Info }) }),
  z.object({ type: z.literal("message.part.updated"), properties: z.object({ ...inSession, part: Part }) }),
  z.object({
    type: z.literal("message.part.delta"),
    properties: z.object({
      ...inSession,
      messageID: z.string(),
      partID: z.string(),
      field: z.string(),
      delta: z.string(),
    }),
  }),
  z.object({
    type: z.literal("session.status"),
    properties: z.object({
      ...inSession,
      status: z.object({ type: z.string(), attempt: z.number().optional(), message: z.string().optional() }),
    }),
  }),
  z.object({ type: z.literal("session.idle"), properties: z.object(inSession) }),
  z.object({
    type: z.literal("session.error"),
    properties: z.object({ sessionID: z.string().optional(), error: Named.optional() }),
  }),
  z.object({
    type: z.literal("permission.asked"),
    properties: z.object({
      ...inSession,
      id: z.string(),
      permission: z.string(),
      patterns: z.array(z.string()).default([]),
      metadata: z.record(z.string(), z.unknown()).default({}),
    }),
  }),
  z.object({
    type: z.literal("question.asked"),
    properties: z.object({ ...inSession, id: z.string(), questions: z.array(Asked) }),
  }),
  z.object({ type: z.literal("file.edited"), properties: z.object({ file: z.string() }) }),
])
export type OpenCodeEvent = z.output<typeof Event>

/** An event that is none, or of a kind that is not known, is nothing. */
export function eventOf(text: string): OpenCodeEvent | undefined {
  try {
    return Event.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const eventCharsMax = 16 * 1024 * 1024

/** The data of each event of a stream of them. */
export async function* streamedEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const piece of body) {
    rest += decoder.decode(piece, { stream: true })
    const blocks = rest.split("\n\n")
    rest = blocks.pop() ?? ""
    // Nothing this long is an event; what comes after it may be one.
    if (rest.length > eventCharsMax) rest = ""
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => line.startsWith("data:"))
      if (lines.length > 0) yield lines.map((line) => line.slice(5).trimStart()).join("\n")
    }
  }
}
