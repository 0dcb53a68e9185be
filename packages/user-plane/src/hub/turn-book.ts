import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { HubUp } from "@warren/protocol/hub/messages.ts"
import type { TurnCause, Usage } from "@warren/protocol/hub/words.ts"
import type { FeedItem } from "@warren/protocol/user-plane/agents.ts"
import type { z } from "zod"
import type { Chats, FinalReason } from "../chat/chats.ts"
import type { Change } from "../chat/fold.ts"
import type { HubStore } from "./hub-store.ts"
import { shownPrompt, type PromptRecord } from "./prompt.ts"

export type Item = z.output<typeof FeedItem>

export interface TurnEnding {
  readonly reason: FinalReason
  readonly cause?: TurnCause | undefined
  readonly error?: string | undefined
  readonly usage?: Usage | undefined
}

export interface TurnBookParts {
  readonly session: string
  readonly store: HubStore
  readonly chats: Chats
  readonly clock: Clock
}

/** Writes down what happens in turns. What it returns is on disk, and may be shown. */
export class TurnBook {
  readonly #parts: TurnBookParts
  /** The turns that are open, by what the supervisor calls them. */
  readonly #turns = new Map<string, PromptRecord>()

  constructor(parts: TurnBookParts) {
    this.#parts = parts
    for (const prompt of parts.store.openPrompts(parts.session))
      if (prompt.turn !== undefined && prompt.state === "sent") this.#turns.set(prompt.turn, prompt)
  }

  /** What a supervisor says: its effect and that it was heard are one. */
  take(message: HubUp, note: () => void): Item[] {
    failpoint("turn/heard")
    // After a power cut nobody goes on with the turn: of what it said only that it is done has to be there.
    const isDone = message.type === "message.finalize"
    const work = (): Item[] => {
      note()
      return this.#apply(message)
    }
    const items = this.#parts.store.transaction(work, isDone ? "power cut" : "kill")
    failpoint("turn/stored")
    return items
  }

  /** Ends a prompt, once; whoever comes second changes nothing. */
  end(promptId: string, ending: TurnEnding): Item[] {
    failpoint("turn/ending")
    return this.#parts.store.transaction(() => this.#end(promptId, ending))
  }

  #apply(message: HubUp): Item[] {
    switch (message.type) {
      case "message.create":
        return this.#create(message.messageId, message.turnId)
      case "message.part.text-delta":
        return this.#change(message.turnId, { kind: "text", type: message.part ?? "text", text: message.delta })
      case "message.part.tool-update":
        return this.#change(message.turnId, { kind: "part", part: toolOf(message) })
      case "message.finalize":
        return this.#end(message.messageId, message)
      case "question":
        return this.#ask(message)
      case "title":
        return this.#title(message.channel, message.title)
      case "agentStatus":
        return [
          {
            type: "agent.status",
            status: message.status,
            ...(message.detail === undefined ? {} : { detail: message.detail }),
          },
        ]
      case "models":
        return [message]
      case "model-switched":
        return [{ type: "model.switched", from: message.from, to: message.to, cause: message.cause }]
      case "files-changed":
        return [{ type: "files.changed", paths: message.paths }]
      case "git-state": {
        const { branch, commit, dirty } = message
        return [
          {
            type: "git.state",
            ...(branch && { branch }),
            ...(commit && { commit }),
            ...(dirty !== undefined && { isDirty: dirty }),
          },
        ]
      }
      case "error":
        return [message]
      case "tool-call":
        // Answered by whoever has the tools; nothing of it is part of a turn.
        return []
    }
  }

  #create(promptId: string, turn: string): Item[] {
    const { store, session } = this.#parts
    const prompt = store.prompt(session, promptId)
    // It was ended meanwhile: what the supervisor still says about it comes too late.
    if (prompt?.state !== "sent" || prompt.turn !== undefined) return []
    return [this.#open(prompt, turn, turn)]
  }

  /** The message that is spoken in from now on. */
  #open(prompt: PromptRecord, turn: string, speaking: string): Item {
    const { store, session, chats } = this.#parts
    const message = chats.append(prompt.chatId, {
      id: speaking,
      role: "assistant",
      state: "open",
      meta: { promptId: prompt.id },
    })
    store.speaks(session, prompt.id, turn, speaking)
    this.#turns.set(turn, { ...prompt, turn, speaking })
    return { type: "message.create", message }
  }

  #change(turn: string, change: Change): Item[] {
    const prompt = this.#turns.get(turn)
    if (!prompt) return []
    try {
      return [this.#changed(prompt, change)]
    } catch (failure) {
      if (Fault.from(failure).code !== "limit") throw failure
    }
    // A message holds only so much: a long answer goes on in the next.
    const { chats } = this.#parts
    const full = chats.finalize(prompt.chatId, prompt.speaking ?? "", "end_turn")
    const opened = this.#open(prompt, turn, newId("msg"))
    const next = this.#turns.get(turn)
    return [{ type: "message.finalize", message: full }, opened, ...(next ? [this.#changed(next, change)] : [])]
  }

  #changed({ chatId, speaking = "" }: PromptRecord, change: Change): Item {
    const seq = this.#parts.chats.change(chatId, speaking, change)
    const where = { chatId, messageId: speaking, seq }
    if (change.kind === "part") return { type: "message.part.tool-update", ...where, part: change.part }
    return { type: "message.part.text-delta", ...where, part: change.type, delta: change.text }
  }

  #end(promptId: string, { reason, cause, error, usage }: TurnEnding): Item[] {
    const { store, session, chats, clock } = this.#parts
    const prompt = store.prompt(session, promptId)
    if (!prompt || prompt.state === "done") return []
    const items: Item[] = []
    // Somebody who asked sees an end, also when the agent never began to speak.
    if (prompt.speaking === undefined) items.push(this.#open(prompt, promptId, newId("msg")))
    const { speaking = "" } = store.prompt(session, promptId) ?? {}
    if (error !== undefined) items.push(...this.#complain(prompt.chatId, speaking, error))
    const endedAt = new Date(clock.now()).toISOString()
    const meta = {
      promptId,
      endedAt,
      ...(cause === undefined ? {} : { cause }),
      ...(usage === undefined ? {} : { usage }),
    }
    items.push({ type: "message.finalize", message: chats.finalize(prompt.chatId, speaking, reason, meta) })
    for (const id of store.closeQuestions(session, { promptId })) items.push({ type: "question.closed", id })
    items.push({ type: "prompt", prompt: shownPrompt(store.move(session, promptId, "end", cause)) })
    for (const [turn, { id }] of this.#turns) if (id === promptId) this.#turns.delete(turn)
    return items
  }

  #complain(chatId: string, messageId: string, message: string): Item[] {
    const part = { type: "error", message } as const
    try {
      const seq = this.#parts.chats.change(chatId, messageId, { kind: "part", part })
      return [{ type: "message.part.tool-update", chatId, messageId, seq, part }]
    } catch (failure) {
      // The message is full; that it ended with an error is said all the same.
      if (Fault.from(failure).code !== "limit") throw failure
      return []
    }
  }

  #ask({ questionId, turnId, text, options }: Extract<HubUp, { type: "question" }>): Item[] {
    const { store, session, clock } = this.#parts
    const prompt = this.#turns.get(turnId)
    if (!prompt) return []
    const askedAt = new Date(clock.now()).toISOString()
    const question = { id: questionId, chatId: prompt.chatId, text, ...(options ? { options } : {}), askedAt }
    store.ask(session, prompt.id, question)
    return [{ type: "question", question }]
  }

  #title(channel: string, title: string): Item[] {
    const chatId = this.#parts.store.chatOf(this.#parts.session, channel)
    if (chatId === undefined) return []
    this.#parts.chats.rename(chatId, title)
    return [{ type: "title", chatId, title }]
  }
}

function toolOf(message: Extract<HubUp, { type: "message.part.tool-update" }>) {
  const { callId, toolName: tool, status, args, result, error } = message
  return {
    ...{ type: "tool" as const, callId, tool, status },
    ...(args === undefined ? {} : { args }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
  }
}
