import type { Item, Output } from "@warren/sdk/routes.ts"

export type Agent = Output<"GET /v1/sessions/{session}/agent">
export type Message = Output<"GET /v1/chats/{id}/messages">["items"][number]
export type Part = Message["parts"][number]
export type ToolPart = Extract<Part, { type: "tool" }>
export type Question = Agent["questions"][number]
export type Feed = Item<"GET /v1/sessions/{id}/feed">
type Progress = Extract<Feed, { type: "provision" }>

/** What is known of a conversation. It is never changed, only replaced: what did not change stays the same object. */
export interface ChatState {
  readonly agent: Agent
  /** The chat that is shown; undefined while nothing was said. */
  readonly chatId: string | undefined
  /** In order. There may be earlier ones. */
  readonly messages: readonly Message[]
  readonly hasEarlier: boolean
  /** What it takes until the agent can begin. */
  readonly steps: readonly Progress[]
  /** What was said elsewhere: it may be the first of a conversation that was begun anew. */
  readonly stray: Message | undefined
  /** Said once, such as another model taking over. */
  readonly notice: string | undefined
  /** When tools began, as this page has seen it, and how long they took. */
  readonly tools: ReadonlyMap<string, { readonly at: number; readonly tookMs?: number }>
}

/** Who speaks on the page. Others, such as a messenger, have conversations of their own. */
export const channel = "web:default"

export function begin(agent: Agent): ChatState {
  const chatId = agent.channels.find((one) => one.channel === channel)?.chatId
  return {
    agent,
    chatId,
    messages: [],
    hasEarlier: false,
    steps: [],
    stray: undefined,
    notice: undefined,
    tools: new Map(),
  }
}

/** The state after something happened. `now`: in milliseconds, for how long tools take. */
export function after(state: ChatState, item: Feed, now: number): ChatState {
  switch (item.type) {
    case "message.create":
      return created(state, item.message)
    case "message.finalize":
      return changed(state, item.message.id, () => item.message)
    case "message.part.text-delta":
      return changed(state, item.messageId, (message) => {
        return item.seq <= message.changedSeq
          ? message
          : { ...message, parts: said(message.parts, item), changedSeq: item.seq }
      })
    case "message.part.tool-update":
      return changed(timed(state, item.part, now), item.messageId, (message) => {
        return item.seq <= message.changedSeq
          ? message
          : { ...message, parts: used(message.parts, item.part), changedSeq: item.seq }
      })
    case "message.reverted":
      return {
        ...state,
        messages: state.messages.map((one) => (item.messageIds.includes(one.id) ? { ...one, isReverted: true } : one)),
      }
    case "provision":
      return { ...state, steps: [...state.steps.filter(({ step }) => step !== item.step), item] }
    case "model.switched":
      return { ...state, notice: `${item.to} goes on, because ${item.from} failed (${item.cause.replace("_", " ")})` }
    case "error":
      return { ...state, notice: item.message }
    case "prompt":
      return { ...turnedTo(state, item.prompt), agent: agentAfter(state.agent, item) }
    default:
      return { ...state, agent: agentAfter(state.agent, item) }
  }
}

function agentAfter(agent: Agent, item: Feed): Agent {
  switch (item.type) {
    case "agent.status": {
      const { detail: _, ...rest } = agent
      return { ...rest, status: item.status, ...(item.detail === undefined ? {} : { detail: item.detail }) }
    }
    case "prompt": {
      const others = agent.prompts.filter(({ messageId }) => messageId !== item.prompt.messageId)
      return { ...agent, prompts: item.prompt.state === "done" ? others : [...others, item.prompt] }
    }
    case "question":
      return { ...agent, questions: [...agent.questions.filter(({ id }) => id !== item.question.id), item.question] }
    case "question.closed":
      return { ...agent, questions: agent.questions.filter(({ id }) => id !== item.id) }
    case "models":
      return { ...agent, models: item.models }
    default:
      return agent
  }
}

/** Somebody began a new conversation on the page: it is the one to show. */
function turnedTo(state: ChatState, prompt: Agent["prompts"][number]): ChatState {
  if (prompt.channel !== channel || prompt.chatId === state.chatId) return state
  const messages = state.stray?.chatId === prompt.chatId ? [state.stray] : []
  return { ...state, chatId: prompt.chatId, messages, hasEarlier: false, stray: undefined }
}

function created(state: ChatState, message: Message): ChatState {
  // Of a messenger's conversation, or one that was begun anew elsewhere.
  if (state.chatId !== undefined && message.chatId !== state.chatId) return { ...state, stray: message }
  if (state.messages.some(({ id }) => id === message.id)) return state
  return { ...state, chatId: message.chatId, messages: [...state.messages, message], notice: undefined }
}

function changed(state: ChatState, id: string, change: (message: Message) => Message): ChatState {
  const at = state.messages.findLastIndex((one) => one.id === id)
  const message = state.messages[at]
  if (!message) return state
  return { ...state, messages: state.messages.with(at, change(message)) }
}

function said(parts: readonly Part[], { part, delta }: Extract<Feed, { type: "message.part.text-delta" }>): Part[] {
  const last = parts.at(-1)
  if (last?.type === part) return [...parts.slice(0, -1), { type: part, text: last.text + delta }]
  return [...parts, { type: part, text: delta }]
}

function used(parts: readonly Part[], part: Part): Part[] {
  if (part.type !== "tool") return [...parts, part]
  const at = parts.findIndex((one) => one.type === "tool" && one.callId === part.callId)
  return at < 0 ? [...parts, part] : parts.with(at, part)
}

function timed(state: ChatState, part: Part, now: number): ChatState {
  if (part.type !== "tool") return state
  const known = state.tools.get(part.callId)
  const isOver = part.status === "completed" || part.status === "error"
  // One that was over when it was first seen has taken a time that nobody knows.
  if (isOver ? known?.tookMs !== undefined || !known : known) return state
  const next = isOver && known ? { at: known.at, tookMs: now - known.at } : { at: now }
  return { ...state, tools: new Map(state.tools).set(part.callId, next) }
}
