import type { Usage } from "@warren/protocol/hub/words.ts"
import type { AgentEvent } from "../adapter.ts"
import type { Info, OpenCodeEvent, Part } from "./events.ts"
import { failureOf, type Failure } from "./failure.ts"

type ToolPart = Extract<Part, { state: object }>
type TextPart = Extract<Part, { text: string }>

const resultCharsMax = 32 * 1024

/** One turn of OpenCode, told in our words. What belongs to an earlier turn, or to a helper's session, says nothing. */
export class TurnReader {
  readonly #session: string
  /** Ids sort by time: what is smaller was there before. */
  readonly #since: string
  readonly #answers = new Map<string, Info>()
  readonly #texts = new Map<string, { readonly type: "text" | "reasoning"; told: number }>()
  readonly #tools = new Map<string, ToolPart>()
  #failure: Failure | undefined
  #title: string | undefined

  constructor(session: string, since: string) {
    this.#session = session
    this.#since = since
  }

  /** The first thing that went wrong, if OpenCode said so. */
  get failure(): Failure | undefined {
    return this.#failure
  }

  /** It began: from now on an idle session means that this turn is over. */
  get hasBegun(): boolean {
    return this.#answers.size > 0 || this.#failure !== undefined
  }

  /** The last message is whole, and asks for no more steps. */
  get isComplete(): boolean {
    const last = [...this.#answers.values()].at(-1)
    return last?.error !== undefined || (last?.time?.completed !== undefined && last.finish !== "tool-calls")
  }

  /** Steps that are done and stay in the conversation: whoever goes on must not do them again. */
  get hasProgress(): boolean {
    return [...this.#answers.values()].some(({ finish }) => finish !== undefined)
  }

  get isInTool(): boolean {
    return [...this.#tools.values()].some(({ state }) => state.status === "running")
  }

  /** The ids of its own messages, the newest first. */
  get answers(): string[] {
    return [...this.#answers.keys()].toReversed()
  }

  read(event: OpenCodeEvent): AgentEvent[] {
    if (event.type === "message.part.updated") return this.part(event.properties.part)
    if (event.type === "message.part.delta") return this.#delta(event.properties)
    if (event.type === "session.updated") return this.#named(event.properties.info.title)
    if (event.type === "file.edited") return this.isInTool ? [{ type: "files", paths: [event.properties.file] }] : []
    this.#note(event)
    return []
  }

  /** What is not told itself, but decides what is. */
  #note(event: OpenCodeEvent): void {
    if (event.type !== "message.updated" && event.type !== "session.error") return
    if (event.properties.sessionID !== this.#session) return
    if (event.type === "message.updated") this.#answered(event.properties.info)
    else if (event.properties.error) this.#fail(event.properties.error)
  }

  /** A message as it is now, whole: what was told of it already is not told again. */
  message(info: Info, parts: readonly Part[]): AgentEvent[] {
    this.#answered(info)
    return parts.flatMap((part) => this.part(part))
  }

  part(part: Part): AgentEvent[] {
    if (!this.#answers.has(part.messageID)) return []
    if ("state" in part) return this.#tool(part)
    return "text" in part ? this.#text(part) : []
  }

  /** What still runs when the turn is over does not run any more. */
  leftovers(): AgentEvent[] {
    const open = [...this.#tools.values()].filter(({ state }) => !isFinal(state.status))
    return open.map((part) => ({ ...callOf(part), status: "error", error: "it was stopped" }))
  }

  usage(): Usage {
    const infos = [...this.#answers.values()]
    const sum = (value: (info: Info) => number | undefined): number =>
      Math.max(0, Math.round(infos.reduce((all, info) => all + (value(info) ?? 0), 0)))
    const last = infos.at(-1)
    const model = last?.providerID === undefined ? undefined : `${last.providerID}/${last.modelID}`.slice(0, 256)
    return {
      inputTokens: sum(({ tokens }) => tokens?.input),
      outputTokens: sum(({ tokens }) => tokens?.output),
      reasoningTokens: sum(({ tokens }) => tokens?.reasoning),
      cacheReadTokens: sum(({ tokens }) => tokens?.cache?.read),
      cacheWriteTokens: sum(({ tokens }) => tokens?.cache?.write),
      costUsd: infos.reduce((all, { cost }) => all + (cost ?? 0), 0),
      ...(model === undefined ? {} : { model }),
    }
  }

  #answered(info: Info): void {
    if (info.role !== "assistant" || info.id <= this.#since) return
    this.#answers.set(info.id, info)
    if (info.error) this.#fail(info.error)
  }

  /** That it was aborted is known to who aborted it. */
  #fail(error: NonNullable<Info["error"]>): void {
    if (error.name !== "MessageAbortedError") this.#failure ??= failureOf(error)
  }

  #text({ id, type, text, synthetic }: TextPart): AgentEvent[] {
    const known = this.#texts.get(id) ?? { type, told: 0 }
    this.#texts.set(id, known)
    const more = synthetic ? "" : text.slice(known.told)
    known.told += more.length
    return more === "" ? [] : [textOf(known.type, more)]
  }

  #delta({ partID, field, delta }: Extract<OpenCodeEvent, { type: "message.part.delta" }>["properties"]): AgentEvent[] {
    const known = this.#texts.get(partID)
    if (!known || field !== "text" || delta === "") return []
    known.told += delta.length
    return [textOf(known.type, delta)]
  }

  #tool(part: ToolPart): AgentEvent[] {
    const before = this.#tools.get(part.id)?.state.status
    if (before === part.state.status || (before !== undefined && isFinal(before))) return []
    this.#tools.set(part.id, part)
    const { status, output = "", error = "it failed" } = part.state
    if (status === "completed") return [{ ...callOf(part), status, result: output.slice(0, resultCharsMax) }]
    if (status === "error") return [{ ...callOf(part), status, error }]
    return [{ ...callOf(part), status }]
  }

  #named(title: string | undefined): AgentEvent[] {
    // Until it has thought of one, it is called after the time.
    if (title === undefined || title === this.#title || /^(New|Child) session - \d/.test(title)) return []
    const isFirst = this.#title === undefined
    this.#title = title
    return isFirst || title !== "" ? [{ type: "title", title }] : []
  }
}

function isFinal(status: ToolPart["state"]["status"]): boolean {
  return status === "completed" || status === "error"
}

function textOf(type: "text" | "reasoning", text: string): AgentEvent {
  return type === "reasoning" ? { type: "text", text, part: "reasoning" } : { type: "text", text }
}

function callOf({ callID, tool, state }: ToolPart) {
  const { input } = state
  const isEmpty = input === undefined || JSON.stringify(input) === "{}"
  return { type: "tool" as const, callId: callID, toolName: tool, ...(isEmpty ? {} : { args: input }) }
}
