import type { Fault } from "@warren/base/fault.ts"
import { plain } from "./plain.ts"
import { Progress } from "./progress.ts"
import { writeOut, type Colour, type Terminal } from "./terminal.ts"

/** What a verb says: to people in words and tables, to programs (`--json`) one JSON value on each line. */
export class Output {
  readonly isJson: boolean
  readonly #terminal: Terminal

  constructor(terminal: Terminal, isJson: boolean) {
    this.#terminal = terminal
    this.isJson = isJson
  }

  /** An answer. `text` is made only when a person reads it. */
  async show(value: unknown, text: () => string): Promise<void> {
    const shown = this.isJson ? JSON.stringify(value) : text()
    if (shown !== "" || this.isJson) await writeOut(this.#terminal.stdout, `${shown}\n`)
  }

  /** Beside the answer: for people only. */
  note(text: string): void {
    if (!this.isJson) this.#terminal.stderr.write(`${text}\n`)
  }

  fail(fault: Fault): void {
    const { stderr } = this.#terminal
    if (this.isJson) stderr.write(`${JSON.stringify({ error: fault.toData() })}\n`)
    else {
      stderr.write(`${this.#terminal.paint(stderr, "red", "warren:")} ${inLines(fault.message)}\n`)
      if (fault.hint !== undefined) stderr.write(`  ${inLines(fault.hint)}\n`)
    }
  }

  paint(colour: Colour, text: string): string {
    return this.#terminal.paint(this.#terminal.stdout, colour, text)
  }

  /** A line that says how far something long has come. */
  progress(): Progress {
    return new Progress(this.#terminal.stderr, !this.isJson && this.#terminal.stderr.isTTY)
  }
}

/** What went wrong may be told in words that come from inside a sandbox. */
function inLines(text: string): string {
  return text.split("\n").map(plain).join("\n")
}
