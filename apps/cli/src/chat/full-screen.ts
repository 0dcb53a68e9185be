import { StringDecoder } from "node:string_decoder"
import { Fault } from "@warren/base/fault.ts"
import { rawMode } from "../program/raw-mode.ts"
import type { Attaching } from "./attached.ts"
import { FollowedChat } from "./followed-chat.ts"
import { keysOf, type Key } from "./keys.ts"
import { answerOf } from "./lines.ts"
import { screenOf } from "./screen.ts"

const drawMs = 30
const typedCharsMax = 100_000
const enter = "\u001b[?1049h\u001b[?25h"
const leave = "\u001b[?1049l"

/** A chat that fills the terminal. */
export class FullScreen {
  readonly #parts: Attaching
  readonly #chat: FollowedChat
  #typed = ""
  #back = 0
  #notice: string | undefined
  #drawing: NodeJS.Timeout | undefined
  #leave: () => void = () => undefined

  private constructor(parts: Attaching, chat: FollowedChat) {
    this.#parts = parts
    this.#chat = chat
  }

  static async open(parts: Attaching): Promise<FullScreen> {
    if (!parts.desk.terminal.isInteractive) throw new Fault("unsupported", "--tui needs a terminal")
    return new FullScreen(parts, await FollowedChat.open(parts))
  }

  async stay(): Promise<number> {
    const { terminal, interrupts, signal } = this.#parts.desk
    const left = new Promise<void>((resolve) => (this.#leave = resolve))
    using _ = interrupts.take(() => this.#leave())
    using __ = rawMode(terminal, () => this.#soon())
    const decoder = new StringDecoder("utf8")
    const hear = (piece: Buffer): void => {
      for (const key of keysOf(decoder.write(piece))) this.#press(key)
      this.#soon()
    }
    terminal.stdout.write(enter)
    terminal.stdin.on("data", hear)
    signal.addEventListener("abort", () => this.#leave(), { once: true })
    try {
      this.#draw()
      await Promise.race([left, this.#follow()])
    } finally {
      clearTimeout(this.#drawing)
      terminal.stdin.off("data", hear)
      terminal.stdin.pause()
      terminal.stdout.write(leave)
    }
    return 0
  }

  async #follow(): Promise<void> {
    for await (const { item } of this.#chat.follow()) {
      if (item?.type === "provision")
        this.#notice = item.state === "done" ? undefined : `${item.step} ${item.percent ?? ""}`.trim()
      if (item?.type === "error") this.#notice = item.message
      this.#soon()
    }
  }

  #press(key: Key): void {
    const { rows } = this.#parts.desk.terminal.window
    switch (key.kind) {
      case "text":
        this.#typed = (this.#typed + key.text).slice(0, typedCharsMax)
        return
      case "erase":
        this.#typed = Array.from(this.#typed).slice(0, -1).join("")
        return
      case "clear":
        this.#typed = ""
        return
      case "enter":
        return this.#enter()
      case "interrupt":
        return this.#chat.transcript.isBusy ? this.#act(this.#abort()) : this.#leave()
      case "leave":
        return this.#leave()
      case "up":
        this.#back = Math.min(this.#back + Math.max(1, rows - 5), backMax)
        return
      case "down":
        this.#back = Math.max(0, this.#back - Math.max(1, rows - 5))
        return
      case "end":
        this.#back = 0
    }
  }

  #enter(): void {
    const text = this.#typed.trim()
    this.#typed = ""
    this.#back = 0
    if (text === "/quit" || text === "/exit") return this.#leave()
    if (text !== "") this.#act(this.#say(text))
  }

  async #say(text: string): Promise<void> {
    const { runner, session, channel } = this.#parts
    const [question] = this.#chat.transcript.questions
    if (question)
      await runner.call("agent.answer", { session, questionId: question.id, answer: answerOf(question, text) })
    else this.#chat.transcript.expect((await runner.call("agent.prompt", { session, channel, text })).messageId)
  }

  async #abort(): Promise<void> {
    await this.#parts.runner.call("agent.abort", { session: this.#parts.session })
  }

  #act(work: Promise<void>): void {
    this.#notice = undefined
    work.catch((failure: unknown) => {
      this.#notice = Fault.from(failure).message
      this.#soon()
    })
  }

  #soon(): void {
    this.#drawing ??= setTimeout(() => this.#draw(), drawMs)
  }

  #draw(): void {
    this.#drawing = undefined
    const { desk, session } = this.#parts
    const { messages, questions, status } = this.#chat.transcript
    const shown = {
      ...{ title: session, status, messages: [...messages.values()], questions },
      ...{ typed: this.#typed, back: this.#back, notice: this.#notice },
    }
    const lines = screenOf(shown, desk.terminal.window, desk.output)
    desk.terminal.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}`)
  }
}

const backMax = 1_000_000
