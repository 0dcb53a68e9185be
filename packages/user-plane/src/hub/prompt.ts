import { Fault } from "@warren/base/fault.ts"
import type { HubDown } from "@warren/protocol/hub/messages.ts"
import type { TurnCause } from "@warren/protocol/hub/words.ts"
import type { QueuedPrompt } from "@warren/protocol/user-plane/agents.ts"
import type { z } from "zod"

type Down = Extract<HubDown, { type: "prompt" }>
export type ShownPrompt = z.output<typeof QueuedPrompt>
export type PromptState = ShownPrompt["state"]
export type PromptMode = ShownPrompt["mode"]

/** A prompt as it is written down. */
export interface PromptRecord {
  readonly n: number
  readonly id: string
  readonly channel: string
  readonly chatId: string
  readonly content: string
  readonly wishes: Pick<Down, "model" | "attachments">
  readonly mode: PromptMode
  readonly state: PromptState
  readonly dueAt: number
  /** How often it was given to a supervisor. */
  readonly tries: number
  /** What the supervisor calls the turn, and the message it speaks in now: a long answer takes several. */
  readonly turn?: string | undefined
  readonly speaking?: string | undefined
  readonly cause?: TurnCause | undefined
  readonly createdAt: number
}

/** Every legal move of a prompt. */
const moves = {
  send: { from: ["queued"], to: "sent" },
  /** The supervisor died before it had it. */
  requeue: { from: ["sent"], to: "queued" },
  end: { from: ["queued", "sent"], to: "done" },
} as const satisfies Record<string, { from: readonly PromptState[]; to: PromptState }>

export function movedPrompt(state: PromptState, move: keyof typeof moves): PromptState {
  const { from, to } = moves[move]
  if ((from as readonly PromptState[]).includes(state)) return to
  throw new Fault("conflict", `a prompt that is ${state} cannot ${move}`)
}

export function shownPrompt({ id, channel, chatId, mode, state, cause, createdAt }: PromptRecord): ShownPrompt {
  return {
    ...{ messageId: id, channel, chatId, mode, state, createdAt: new Date(createdAt).toISOString() },
    ...(cause === undefined ? {} : { cause }),
  }
}
