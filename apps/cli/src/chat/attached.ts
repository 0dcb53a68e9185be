import { createInterface } from "node:readline"
import { Fault } from "@warren/base/fault.ts"
import type { Desk } from "../desk.ts"
import type { Asking } from "../control/far-warren.ts"
import { FollowedChat } from "./followed-chat.ts"
import { answerOf, questionLines } from "./lines.ts"
import { Printer } from "./printer.ts"

export interface Attaching {
  readonly runner: Asking
  readonly desk: Desk
  readonly session: string
  readonly channel: string
}

const exitCodes: Readonly<Record<string, number>> = { end_turn: 0, canceled: 130 }
const historyShown = 20

/** A chat on plain lines: what is said is printed as it comes, what is typed is said. */
export class Attached {
  readonly #parts: Attaching
  readonly #chat: FollowedChat
  readonly #printer: Printer
  #isLeaving = false
  #leave: () => void = () => undefined

  private constructor(parts: Attaching, chat: FollowedChat) {
    this.#parts = parts
    this.#chat = chat
    this.#printer = new Printer(parts.desk.terminal, parts.desk.output)
  }

  static async open(parts: Attaching): Promise<Attached> {
    return new Attached(parts, await FollowedChat.open(parts))
  }

  /** Prints until that prompt is done. Ctrl-C aborts it. The exit code says how it ended. */
  async untilDone(messageId: string): Promise<number> {
    using _ = this.#parts.desk.interrupts.take(() => void this.#abort())
    this.#printer.skip(messageId)
    this.#chat.transcript.expect(messageId)
    let reason = ""
    for await (const { item, message } of this.#chat.follow()) {
      await this.#show(item, message)
      if (message?.promptId === messageId && message.state === "final") reason = message.reason ?? ""
      if (!this.#chat.transcript.isOpen(messageId) && (item === undefined || item.type === "prompt")) break
    }
    return exitCodes[reason] ?? 1
  }

  /** Until the person has enough, or, where nobody sits, until everything that was piped in is done. */
  async stay(): Promise<number> {
    const { desk } = this.#parts
    using _ = desk.interrupts.take((name) => {
      if (name === "SIGINT" && this.#chat.transcript.isBusy) void this.#abort()
      else this.#leave()
    })
    const left = new Promise<void>((resolve) => (this.#leave = resolve))
    await this.#history()
    const reader = createInterface({ input: desk.terminal.stdin, terminal: false })
    const typing = this.#type(reader)
    const following = this.#follow()
    try {
      await Promise.race([left, following, typing.then(() => this.#quiet(following))])
    } finally {
      this.#isLeaving = true
      reader.close()
      desk.terminal.stdin.pause()
      desk.terminal.stdin.unref?.()
    }
    return 0
  }

  /** Nothing more is typed. A person leaves with that; what was piped in is waited for. */
  async #quiet(following: Promise<void>): Promise<void> {
    if (this.#parts.desk.terminal.stdin.isTTY) return
    while (this.#chat.transcript.isBusy) await Promise.race([following, this.#changed()])
  }

  readonly #waiting: (() => void)[] = []

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async #history(): Promise<void> {
    const { desk } = this.#parts
    const { messages, questions } = this.#chat.transcript
    if (desk.output.isJson) return
    const known = [...messages.values()].filter(({ isReverted }) => !isReverted)
    for (const message of known.slice(-historyShown)) await this.#printer.message(message)
    for (const question of questions)
      for (const line of questionLines(question, desk.output)) await this.#printer.line(line)
  }

  async #follow(): Promise<void> {
    for await (const { item, message } of this.#chat.follow()) {
      if (this.#isLeaving) return
      await this.#show(item, message)
      for (const wake of this.#waiting.splice(0)) wake()
    }
  }

  async #type(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      const text = line.trim()
      if (text === "/quit" || text === "/exit") return this.#leave()
      if (text === "/abort") await this.#abort()
      else if (text !== "") await this.#say(text).catch((failure: unknown) => this.#refused(failure))
    }
  }

  async #say(text: string): Promise<void> {
    const { runner, session, channel, desk } = this.#parts
    const [question] = this.#chat.transcript.questions
    if (question) {
      await runner.call("agent.answer", { session, questionId: question.id, answer: answerOf(question, text) })
      return
    }
    const { messageId } = await runner.call("agent.prompt", { session, channel, text })
    // What is piped in is not seen otherwise.
    if (desk.terminal.stdin.isTTY) this.#printer.skip(messageId)
    this.#chat.transcript.expect(messageId)
  }

  #refused(failure: unknown): void {
    const { message, code } = Fault.from(failure)
    if (code !== "cancelled") this.#parts.desk.output.note(`warren: ${message}`)
  }

  async #abort(): Promise<void> {
    const { runner, session } = this.#parts
    await runner.callAnyway("agent.abort", { session }).catch((failure: unknown) => this.#refused(failure))
  }

  async #show(
    item: Parameters<Printer["item"]>[0] | undefined,
    message: Parameters<Printer["message"]>[0] | undefined,
  ): Promise<void> {
    const { output } = this.#parts.desk
    if (output.isJson) return item && output.show(item, () => "")
    if (message) await this.#printer.message(message)
    if (item) await this.#printer.item(item)
  }
}
