import type { SessionUpdate, StopReason, ToolCallUpdate } from "@agentclientprotocol/sdk"
import { z } from "zod"
import { canceled, failed, type AgentEvent, type TurnEnd } from "../adapter.ts"

const resultCharsMax = 32 * 1024
const statuses = { pending: "pending", in_progress: "running", completed: "completed", failed: "error" } as const
type Json = z.core.util.JSONType

interface Call {
  readonly toolName: string
  readonly args?: Json | undefined
  readonly status: (typeof statuses)[keyof typeof statuses]
}

/** One turn of an agent that speaks ACP, told in our words. */
export class AcpWords {
  readonly #calls = new Map<string, Call>()

  read(update: SessionUpdate): AgentEvent[] {
    const { sessionUpdate: kind } = update
    if (kind === "agent_message_chunk" || kind === "agent_thought_chunk") return said(update)
    if (kind === "tool_call" || kind === "tool_call_update") return this.#tool(update)
    if (kind === "session_info_update" && update.title) return [{ type: "title", title: update.title }]
    return []
  }

  /** What still runs when the turn is over does not run any more. */
  leftovers(): AgentEvent[] {
    const open = [...this.#calls].filter(([, { status }]) => status === "pending" || status === "running")
    return open.map(([callId, call]) => ({ ...shown(callId, call), status: "error", error: "it was stopped" }))
  }

  #tool(update: ToolCallUpdate): AgentEvent[] {
    const before = this.#calls.get(update.toolCallId)
    const args = jsonOf(update.rawInput) ?? before?.args
    const call: Call = {
      toolName: (update.name ?? before?.toolName ?? update.title ?? update.kind ?? "tool").slice(0, 256),
      ...(args === undefined || JSON.stringify(args) === "{}" ? {} : { args }),
      status: statuses[update.status ?? "pending"] ?? before?.status ?? "pending",
    }
    const status = update.status ? call.status : (before?.status ?? call.status)
    this.#calls.set(update.toolCallId, { ...call, status })
    const isNews = before?.status !== status || (before.args === undefined && call.args !== undefined)
    if (!isNews || before?.status === "completed" || before?.status === "error") return []
    const common = { ...shown(update.toolCallId, call), status }
    if (status === "completed") return [{ ...common, result: resultOf(update) }]
    if (status === "error") return [{ ...common, error: resultOf(update) || "it failed" }]
    return [common]
  }
}

const ends: Readonly<Record<StopReason, TurnEnd>> = {
  end_turn: { type: "end", reason: "end_turn" },
  max_tokens: failed("limit", "the answer is as long as it may be"),
  max_turn_requests: failed("limit", "it took as many steps as it may"),
  refusal: failed("verdict", "it refused"),
  cancelled: canceled,
}

export function endOf(reason: StopReason): TurnEnd {
  return ends[reason] ?? failed("verdict", `it stopped: ${reason}`)
}

type Saying = Extract<SessionUpdate, { sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" }>

function said({ sessionUpdate, content }: Saying): AgentEvent[] {
  if (content.type !== "text" || content.text === "") return []
  return [
    { type: "text", text: content.text, ...(sessionUpdate === "agent_thought_chunk" ? { part: "reasoning" } : {}) },
  ]
}

function shown(callId: string, { toolName, args }: Call) {
  return { type: "tool" as const, callId, toolName, ...(args === undefined ? {} : { args }) }
}

function resultOf({ content, rawOutput }: ToolCallUpdate): string {
  const texts = (content ?? []).map((one) =>
    one.type === "content" && one.content.type === "text" ? one.content.text : one.type === "diff" ? one.path : "",
  )
  const text = texts.join("")
  if (text !== "") return text.slice(0, resultCharsMax)
  if (rawOutput === undefined || rawOutput === null) return ""
  return (typeof rawOutput === "string" ? rawOutput : JSON.stringify(rawOutput)).slice(0, resultCharsMax)
}

function jsonOf(value: unknown): Json | undefined {
  return z.json().safeParse(value).data
}
