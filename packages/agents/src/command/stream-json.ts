import type { TurnCause, Usage } from "@warren/protocol/hub/words.ts"
import { z } from "zod"
import { canceled, failed, type AgentEvent, type TurnEnd } from "../adapter.ts"

/** What Claude Code prints with `--output-format stream-json`, as far as it is understood here. Other fields and kinds pass by. */
const Block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("thinking"), thinking: z.string() }),
  z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.json().optional() }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z.json().optional(),
    is_error: z.boolean().nullish(),
  }),
  z.object({ type: z.string() }),
])
const Content = z.union([z.string(), z.array(Block)])
const inner = { parent_tool_use_id: z.string().nullish() }
const Tokens = z.object({
  input_tokens: z.int().nullish(),
  output_tokens: z.int().nullish(),
  cache_read_input_tokens: z.int().nullish(),
  cache_creation_input_tokens: z.int().nullish(),
})

const Line = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("system"),
    subtype: z.string().nullish(),
    session_id: z.string().nullish(),
    model: z.string().nullish(),
  }),
  z.object({
    type: z.literal("assistant"),
    message: z.object({ id: z.string().nullish(), model: z.string().nullish(), content: Content }),
    ...inner,
  }),
  z.object({ type: z.literal("user"), message: z.object({ content: Content }), ...inner }),
  z.object({
    type: z.literal("stream_event"),
    ...inner,
    event: z.object({
      type: z.string(),
      message: z.object({ id: z.string() }).optional(),
      content_block: Block.optional(),
      delta: z
        .object({ type: z.string().nullish(), text: z.string().nullish(), thinking: z.string().nullish() })
        .optional(),
    }),
  }),
  z.object({
    type: z.literal("result"),
    subtype: z.string(),
    is_error: z.boolean().nullish(),
    api_error_status: z.int().nullish(),
    result: z.string().nullish(),
    session_id: z.string().nullish(),
    duration_ms: z.number().nullish(),
    total_cost_usd: z.number().nullish(),
    usage: Tokens.nullish(),
  }),
  z.object({
    type: z.literal("control_request"),
    request_id: z.string(),
    request: z.object({ subtype: z.string(), tool_name: z.string().nullish(), input: z.json().optional() }),
  }),
])
type Line = z.output<typeof Line>
export type Permission = Extract<Line, { type: "control_request" }>

const resultCharsMax = 32 * 1024
const causes: Readonly<Record<number, TurnCause>> = {
  401: "auth",
  402: "billing",
  403: "auth",
  408: "timeout",
  429: "rate_limit",
  504: "timeout",
}

/** One conversation with Claude Code, told in our words. */
export class StreamJson {
  sessionId: string | undefined
  #model: string | undefined
  /** The message that came in pieces: whole, it says nothing new. */
  #inPieces: string | undefined
  #hasText = false
  readonly #tools = new Map<string, { readonly toolName: string; readonly args?: z.core.util.JSONType | undefined }>()

  /** A new turn begins. */
  begin(): void {
    this.#hasText = false
    this.#inPieces = undefined
    this.#tools.clear()
  }

  /** What still runs when the turn is over does not run any more. */
  leftovers(): AgentEvent[] {
    const open = [...this.#tools]
    this.#tools.clear()
    return open.map(([callId, call]) => ({ type: "tool", callId, ...call, status: "error", error: "it was stopped" }))
  }

  /** What a line says. A permission it asks for is for the caller to answer; what is no line of this kind says nothing. */
  read(text: string): { readonly events: AgentEvent[]; readonly permission?: Permission } {
    const line = Line.safeParse(parsed(text))
    if (!line.success) return { events: [] }
    if (line.data.type === "control_request") return { events: [], permission: line.data }
    // What an agent's own helpers say is their business; their work is seen as the tool call that started them.
    if ("parent_tool_use_id" in line.data && line.data.parent_tool_use_id) return { events: [] }
    return { events: [...this.#told(line.data)] }
  }

  *#told(line: Exclude<Line, Permission>): Generator<AgentEvent, void, void> {
    if (line.type === "system") {
      this.sessionId = line.session_id ?? this.sessionId
      this.#model = line.model ?? this.#model
    } else if (line.type === "stream_event") yield* this.#piece(line.event)
    else if (line.type === "assistant") yield* this.#whole(line.message)
    else if (line.type === "user") yield* this.#results(line.message.content)
    else yield* this.#end(line)
  }

  *#piece(event: Extract<Line, { type: "stream_event" }>["event"]): Generator<AgentEvent, void, void> {
    if (event.type === "message_start") this.#inPieces = event.message?.id
    if (event.type !== "content_block_delta" || !event.delta) return
    const { type, text, thinking } = event.delta
    if (type === "text_delta" && text) yield this.#text(text)
    if (type === "thinking_delta" && thinking) yield { type: "text", text: thinking, part: "reasoning" }
  }

  *#whole({ id, model, content }: Extract<Line, { type: "assistant" }>["message"]): Generator<AgentEvent, void, void> {
    // Not said by a model: what went wrong, which the result says as well.
    if (model === "<synthetic>") return
    const isKnown = id !== undefined && id !== null && id === this.#inPieces
    if (typeof content === "string") return yield this.#text(content)
    for (const block of content) {
      if ("name" in block) yield this.#call(block.id, block.name, block.input)
      else if ("text" in block && !isKnown) yield this.#text(block.text)
      else if ("thinking" in block && !isKnown) yield { type: "text", text: block.thinking, part: "reasoning" }
    }
  }

  #call(callId: string, toolName: string, args: z.core.util.JSONType | undefined): AgentEvent {
    const call = args === undefined ? { toolName } : { toolName, args: limited(args) }
    this.#tools.set(callId, call)
    return { type: "tool", callId, ...call, status: "running" }
  }

  *#results(content: z.output<typeof Content>): Generator<AgentEvent, void, void> {
    if (typeof content === "string") return
    for (const block of content) {
      if (!("tool_use_id" in block)) continue
      const call = this.#tools.get(block.tool_use_id) ?? { toolName: "tool" }
      this.#tools.delete(block.tool_use_id)
      const common = { type: "tool", callId: block.tool_use_id, ...call } as const
      if (block.is_error) yield { ...common, status: "error", error: wordsOf(block.content) }
      else yield { ...common, status: "completed", result: limited(wordsOf(block.content)) }
    }
  }

  *#end(line: Extract<Line, { type: "result" }>): Generator<AgentEvent, void, void> {
    this.sessionId = line.session_id ?? this.sessionId
    const isBad = line.is_error === true || line.subtype !== "success"
    if (!isBad && !this.#hasText && line.result) yield this.#text(line.result)
    yield endOf(line, isBad, this.#usage(line))
  }

  #usage({ usage, duration_ms, total_cost_usd }: Extract<Line, { type: "result" }>): Usage {
    const known = {
      inputTokens: usage?.input_tokens,
      outputTokens: usage?.output_tokens,
      cacheReadTokens: usage?.cache_read_input_tokens,
      cacheWriteTokens: usage?.cache_creation_input_tokens,
      durationMs: duration_ms,
      costUsd: total_cost_usd,
      model: this.#model,
    }
    return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined && value !== null))
  }

  #text(text: string): AgentEvent {
    this.#hasText = true
    return { type: "text", text }
  }
}

function endOf(line: Extract<Line, { type: "result" }>, isBad: boolean, usage: Usage): TurnEnd {
  if (!isBad) return { type: "end", reason: "end_turn", usage }
  if (line.subtype === "error_during_execution" && !line.api_error_status) return { ...canceled, usage }
  if (line.subtype === "error_max_turns") return failed("limit", "it took as many steps as it may", usage)
  return failed(causes[line.api_error_status ?? 0] ?? "verdict", line.result ?? line.subtype, usage)
}

function wordsOf(content: unknown): string {
  if (typeof content === "string") return content.slice(0, resultCharsMax)
  if (!Array.isArray(content)) return content === undefined ? "" : JSON.stringify(content).slice(0, resultCharsMax)
  const texts = content.map((part: unknown) => (part as { text?: unknown } | null)?.text)
  return texts
    .filter((text) => typeof text === "string")
    .join("")
    .slice(0, resultCharsMax)
}

/** What is too long to be shown is shown as its beginning. */
function limited(value: z.core.util.JSONType): z.core.util.JSONType {
  const text = JSON.stringify(value)
  return text.length <= resultCharsMax ? value : `${text.slice(0, resultCharsMax)}…`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
