import type { AgentEvent } from "../adapter.ts"
import type { Questions } from "../questions.ts"
import { policyOf, type OpenCodeSpec } from "./configuration.ts"
import type { OpenCodeEvent } from "./events.ts"
import type { OpenCodeServer } from "./server.ts"

type PermissionAsked = Extract<OpenCodeEvent, { type: "permission.asked" }>["properties"]
type QuestionAsked = Extract<OpenCodeEvent, { type: "question.asked" }>["properties"]

export interface RequestsParts {
  readonly server: OpenCodeServer
  readonly questions: Questions
  readonly permissions: OpenCodeSpec["permissions"]
  readonly messageId: string
  /** Aborts when the turn is over: nobody waits for an answer then. */
  readonly turn: AbortSignal
}

const detailCharsMax = 4_096

/** What OpenCode wants to know in a turn: permissions by the policy, and questions of its own. */
export class Requests {
  readonly #parts: RequestsParts
  #asked = 0
  #open = 0

  constructor(parts: RequestsParts) {
    this.#parts = parts
  }

  /** Somebody thinks about an answer: it is not the model that is silent. */
  get areOpen(): boolean {
    return this.#open > 0
  }

  permission({ id, permission, patterns, metadata }: PermissionAsked): AgentEvent[] {
    const reply = (answer: "once" | "always" | "reject"): void =>
      this.#reply(`/permission/${id}/reply`, { reply: answer })
    const policy = policyOf(this.#parts.permissions, permission)
    if (policy !== "ask") {
      reply(policy === "allow" ? "once" : "reject")
      return []
    }
    const about = typeof metadata["command"] === "string" ? metadata["command"] : patterns.join(" ")
    const text = `May it use ${permission}? ${about}`.slice(0, detailCharsMax)
    const event = this.#ask(text, ["allow", "always", "deny"], (answer) =>
      reply(answer === "allow" ? "once" : answer === "always" ? "always" : "reject"),
    )
    return [event]
  }

  /** Several at once are told at once; it goes on when all are answered. */
  question({ id, questions }: QuestionAsked): AgentEvent[] {
    const answers: string[] = []
    let left = questions.length
    return questions.map(({ question, options }, index) =>
      this.#ask(
        question.slice(0, detailCharsMax),
        options.map(({ label }) => label.slice(0, 1_024)).slice(0, 32),
        (answer) => {
          answers[index] = answer
          if (--left === 0) this.#reply(`/question/${id}/reply`, { answers: answers.map((one) => [one]) })
        },
      ),
    )
  }

  /** Asked before it is told, so that no answer can come too early. */
  #ask(text: string, options: string[], answered: (answer: string) => void): AgentEvent {
    const questionId = `${this.#parts.messageId}.q${++this.#asked}`
    this.#open++
    void this.#parts.questions
      .ask(questionId, this.#parts.turn)
      .then(answered)
      .catch(() => undefined)
      .finally(() => this.#open--)
    return { type: "question", questionId, text, ...(options.length > 0 ? { options } : {}) }
  }

  /** One that is gone needs no answer. */
  #reply(path: string, body: object): void {
    void this.#parts.server.tell({ method: "POST", path, body }).catch(() => undefined)
  }
}
