import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js"
import type { Item } from "@warren/protocol/contract.ts"
import type { userPlane } from "@warren/protocol/user-plane.ts"
import { given, text, type Bench } from "./tool.ts"

type FeedItem = Item<typeof userPlane, "session.feed">
type Message = Extract<FeedItem, { type: "message.finalize" }>["message"]
type Question = Extract<FeedItem, { type: "question" }>["question"]

interface Waiting {
  readonly session: string
  readonly messageId: string
  readonly after: number
  readonly waitMs: number
}

const tellMs = 5_000
const answerCharsMax = 64 * 1024

/** What an agent answers to a prompt, or asks before it can. */
export async function awaitAnswer(waiting: Waiting, bench: Bench): Promise<CallToolResult> {
  const { session, messageId, waitMs } = waiting
  const patience = AbortSignal.timeout(waitMs)
  const asking = bench.asking.until(AbortSignal.any([bench.asking.signal, patience]))
  const telling = setInterval(() => bench.progress("the agent works on it"), tellMs)
  const answer = new Answer(messageId)
  let next = waiting.after
  try {
    for await (const { seq, item } of asking.feed("session.feed", { id: session, after: next })) {
      next = seq
      if (item.type === "question") return asked(item.question, { session, messageId, next })
      if (answer.hear(item)) return answer.result(next)
    }
  } catch (thrown) {
    if (bench.asking.signal.aborted || !patience.aborted) throw thrown
  } finally {
    clearInterval(telling)
  }
  return {
    ...text(`It still works on it: read_feed ${JSON.stringify({ session, after: next })}`),
    structuredContent: { messageId, isDone: false, next },
  }
}

function asked(question: Question, at: { session: string; messageId: string; next: number }): CallToolResult {
  const { session, messageId, next } = at
  const choices = question.options ? ` (${question.options.join(" | ")})` : ""
  const pointer = JSON.stringify({ session, questionId: question.id })
  return {
    ...text(`It asks: ${question.text}${choices}`, `answer_agent ${pointer}`),
    structuredContent: { messageId, isDone: false, question: { ...question }, next },
  }
}

/** The messages that answer one prompt: a long turn may fill more than one. */
class Answer {
  readonly #messageId: string
  readonly #mine = new Set<string>()
  #said = ""
  #last: Message | undefined
  #cause: string | undefined

  constructor(messageId: string) {
    this.#messageId = messageId
  }

  /** Whether that was its end. */
  hear(item: FeedItem): boolean {
    if (item.type === "message.create" && item.message.promptId === this.#messageId) this.#mine.add(item.message.id)
    if (item.type === "message.finalize") this.#add(item.message)
    const isOver = item.type === "prompt" && item.prompt.messageId === this.#messageId && item.prompt.state === "done"
    if (isOver) this.#cause = item.prompt.cause
    return isOver
  }

  result(next: number): CallToolResult {
    const isCut = this.#said.length > answerCharsMax
    const answer = this.#said.slice(0, answerCharsMax)
    const { reason, usage, chatId } = this.#last ?? {}
    const cause = this.#cause ?? this.#last?.cause
    const remarks = [
      ...(isCut ? [`[cut: all of it is in read_feed, and in chat ${chatId}]`] : []),
      ...(reason === "end_turn" ? [] : [`[${reason ?? "over"}${cause === undefined ? "" : `: ${cause}`}]`]),
    ]
    return {
      ...text(answer, ...remarks),
      structuredContent: { messageId: this.#messageId, isDone: true, answer, next, ...given({ reason, cause, usage }) },
      isError: reason === "error" || reason === "lost",
    }
  }

  #add(message: Message): void {
    if (message.promptId !== this.#messageId && !this.#mine.has(message.id)) return
    const texts = message.parts.flatMap((part) => {
      if (part.type === "text") return [part.text]
      return part.type === "error" ? [part.message] : []
    })
    this.#said = [this.#said, ...texts].filter((one) => one !== "").join("\n")
    this.#last = message
  }
}
