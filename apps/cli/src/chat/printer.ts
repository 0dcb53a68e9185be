import type { Output } from "../terminal/output.ts"
import { writeOut, type Colour, type Terminal } from "../terminal/terminal.ts"
import { endingOf, harmless, questionLines, toolLine, toolResult } from "./lines.ts"
import type { FeedItem, Message, Part } from "./transcript.ts"

const pathsShown = 10

/** How much of a part was printed: letters of a text, or the status of a tool. */
type Printed = number | string

/** Prints a chat as it grows: each letter once, whatever is told twice or missed. */
export class Printer {
  readonly #terminal: Terminal
  readonly #output: Output
  readonly #printed = new Map<string, { readonly parts: Printed[]; isOver: boolean }>()
  /** Said here, and seen while it was typed. */
  readonly #own = new Set<string>()
  #isAtStart = true

  constructor(terminal: Terminal, output: Output) {
    this.#terminal = terminal
    this.#output = output
  }

  /** Not to be printed: the person sees it already. */
  skip(messageId: string): void {
    this.#own.add(messageId)
  }

  /** Whatever of a message is new. */
  async message(message: Message): Promise<void> {
    if (this.#own.has(message.id)) return
    const seen = this.#printed.get(message.id) ?? { parts: [], isOver: false }
    this.#printed.set(message.id, seen)
    for (const [index, part] of message.parts.entries())
      seen.parts[index] = await this.#part(part, seen.parts[index], message.role === "user")
    if (message.state !== "final" || seen.isOver) return
    seen.isOver = true
    await this.#line()
    const ending = endingOf(message)
    if (ending !== undefined) await this.line(this.#output.paint("dim", ending))
  }

  /** What is worth a line besides messages. */
  async item(item: FeedItem): Promise<void> {
    if (item.type === "question") for (const line of questionLines(item.question, this.#output)) await this.line(line)
    else if (item.type === "provision" && item.state !== "running")
      await this.#remark(item.state === "done" ? "dim" : "red", `${item.step}: ${item.detail ?? item.state}`)
    else if (item.type === "files.changed")
      await this.#remark("dim", `changed: ${item.paths.slice(0, pathsShown).join(", ")}`)
    else if (item.type === "model.switched")
      await this.#remark("yellow", `${item.from} failed (${item.cause}); now ${item.to}`)
    else if (item.type === "error") await this.#remark("red", item.message)
  }

  #remark(colour: Colour, text: string): Promise<void> {
    return this.line(this.#output.paint(colour, harmless(text)))
  }

  async line(text: string): Promise<void> {
    await this.#line()
    await this.#write(`${text}\n`)
  }

  async #part(part: Part, before: Printed | undefined, isUser: boolean): Promise<Printed> {
    if (part.type === "text" || part.type === "reasoning") {
      const from = typeof before === "number" ? before : 0
      if (from === 0) await this.#line()
      const text = harmless(part.text.slice(from))
      if (isUser) await this.line(this.#output.paint("bold", `› ${text}`))
      else await this.#write(part.type === "reasoning" ? this.#output.paint("dim", text) : text)
      return part.text.length
    }
    if (part.type === "tool") return this.#tool(part, before)
    if (before !== undefined) return before
    if (part.type === "error") await this.line(this.#output.paint("red", harmless(part.message)))
    else await this.line(this.#output.paint("dim", `[${harmless(part.name)}]`))
    return "shown"
  }

  async #tool(part: Extract<Part, { type: "tool" }>, before: Printed | undefined): Promise<Printed> {
    if (before === part.status) return before
    const isOver = part.status === "completed" || part.status === "error"
    // Its line was printed when it began; only what came of it is new.
    if (before === undefined || part.status === "error") await this.line(toolLine(part, this.#output))
    if (isOver) for (const line of toolResult(part, this.#output)) await this.line(line)
    return part.status
  }

  /** Begins a new line, unless one has just begun. */
  async #line(): Promise<void> {
    if (!this.#isAtStart) await this.#write("\n")
  }

  async #write(text: string): Promise<void> {
    if (text === "") return
    this.#isAtStart = text.endsWith("\n")
    await writeOut(this.#terminal.stdout, text)
  }
}
