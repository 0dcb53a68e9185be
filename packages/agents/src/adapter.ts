import type { AgentSpec } from "@warren/protocol/hub/agent-spec.ts"
import type { HubDown, HubUp } from "@warren/protocol/hub/messages.ts"
import type { TurnCause, Usage } from "@warren/protocol/hub/words.ts"

export type Prompt = Omit<Extract<HubDown, { type: "prompt" }>, "type">
type ToolUpdate = Extract<HubUp, { type: "message.part.tool-update" }>

/** How a turn ended. */
export interface TurnEnd {
  readonly type: "end"
  readonly reason: "end_turn" | "error" | "canceled"
  /** With every end that is no answer. */
  readonly cause?: TurnCause | undefined
  readonly error?: string | undefined
  readonly usage?: Usage | undefined
}

/** What happens in a turn, in one vocabulary for every kind of agent. */
export type AgentEvent =
  | { readonly type: "text"; readonly text: string; readonly part?: "text" | "reasoning" | undefined }
  | ({ readonly type: "tool" } & Omit<ToolUpdate, "type" | "turnId">)
  | {
      readonly type: "question"
      readonly questionId: string
      readonly text: string
      readonly options?: string[] | undefined
    }
  | { readonly type: "title"; readonly title: string }
  | { readonly type: "files"; readonly paths: string[] }
  | { readonly type: "switched"; readonly from: string; readonly to: string; readonly cause: TurnCause }
  | TurnEnd

/**
 * How one kind of agent is driven. Whoever drives it asks for one turn at a time in each channel; `stop` (disposing it) is legal at any
 * time, may be called twice, and leaves no process behind.
 */
export interface AgentAdapter extends AsyncDisposable {
  readonly name: string
  /** Ready for prompts when it resolves. A `Fault` says why not. */
  start(signal: AbortSignal): Promise<void>
  /**
   * One turn: its events, and then exactly one `end`, also when it fails. Aborting the signal ends it with `canceled` once what it had
   * started has stopped; the next prompt works. Who reads slowly holds the agent back.
   */
  prompt(prompt: Prompt, signal: AbortSignal): AsyncIterable<AgentEvent>
  /** False: nobody asks that (any more). */
  answer(questionId: string, answer: string): boolean
  /** Forgets what was said in a channel since that prompt, where it can: `messageId` undefined is everything. */
  forget?(channel: string, messageId: string | undefined): Promise<void>
  /** Another configuration, between turns and without forgetting, where it can. Says whether that made a difference. */
  configure?(spec: AgentSpec, signal: AbortSignal): Promise<boolean>
}

export const canceled: TurnEnd = { type: "end", reason: "canceled", cause: "cancelled" }

export function failed(cause: TurnCause, error: string, usage?: Usage): TurnEnd {
  return { type: "end", reason: "error", cause, error, ...(usage ? { usage } : {}) }
}
