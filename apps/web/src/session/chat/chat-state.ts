import type { Item, Output } from "@warren/sdk/routes.ts"

export type Agent = Output<"GET /v1/sessions/{session}/agent">
export type Message = Output<"GET /v1/chats/{id}/messages">["items"][number]
export type Part = Message["parts"][number]
export type ToolPart = Extract<Part, { type: "tool" }>
export type Question = Agent["questions"][number]
export type Feed = Item<"GET /v1/sessions/{id}/feed">
type Progress = Omit<Extract<Feed, { type: "provision" }>, "type">

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

type Change<K> = (state: ChatState, item: Extract<Feed, { type: K }>, now: number) => ChatState

/** What each thing that happens does to a conversation. What is not here changes nothing that is shown. */
const changes: { readonly [K in Feed["type"]]?: Change<K> } = {
  "message.create": (state, { message }) => created(state, message),
  "message.finalize": (state, { message }) => changed(state, message.id, () => message),
  "message.part.text-delta": (state, item) => {
    return changed(state, item.messageId, (message) => newer(message, item.seq, said(message.parts, item)))
  },
  "message.part.tool-update": (state, item, now) => {
    return changed(timed(state, item.part, now), item.messageId, (message) => {
      return newer(message, item.seq, used(message.parts, item.part))
    })
  },
  "message.reverted": (state, { messageIds }) => {
    const isMeant = ({ id }: Message): boolean => messageIds.includes(id)
    return { ...state, messages: state.messages.map((one) => (isMeant(one) ? { ...one, isReverted: true } : one)) }
  },
  provision: (state, { type: _, ...step }) => {
    return { ...state, steps: [...state.steps.filter((one) => one.step !== step.step), step] }
  },
  "model.switched": (state, { from, to, cause }) => {
    return { ...state, notice: `${to} goes on, because ${from} failed (${cause.replace("_", " ")})` }
  },
  error: (state, { message }) => ({ ...state, notice: message }),
  "agent.status": (state, { status, detail }) => {
    const { detail: _, ...rest } = state.agent
    return { ...state, agent: { ...rest, status, ...(detail === undefined ? {} : { detail }) } }
  },
  prompt: (state, { prompt }) => {
    const others = state.agent.prompts.filter(({ messageId }) => messageId !== prompt.messageId)
    const prompts = prompt.state === "done" ? others : [...others, prompt]
    return { ...turnedTo(state, prompt), agent: { ...state.agent, prompts } }
  },
  question: (state, { question }) => {
    const others = state.agent.questions.filter(({ id }) => id !== question.id)
    return { ...state, agent: { ...state.agent, questions: [...others, question] } }
  },
  "question.closed": (state, { id }) => {
    return { ...state, agent: { ...state.agent, questions: state.agent.questions.filter((one) => one.id !== id) } }
  },
  models: (state, { models }) => ({ ...state, agent: { ...state.agent, models } }),
}

/** The state after something happened. `now`: in milliseconds, for how long tools take. */
export function after(state: ChatState, item: Feed, now: number): ChatState {
  const change = changes[item.type] as Change<Feed["type"]> | undefined
  return change ? change(state, item, now) : state
}

/** What was told before is in it already. */
function newer(message: Message, seq: number, parts: Part[]): Message {
  return seq <= message.changedSeq ? message : { ...message, parts, changedSeq: seq }
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
