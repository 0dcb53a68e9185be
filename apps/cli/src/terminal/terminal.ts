import type { ReadStream, WriteStream } from "node:tty"
import { Fault } from "@warren/base/fault.ts"

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
export type Colour = keyof typeof codes

interface TerminalParts {
  readonly stdin: ReadStream
  readonly stdout: WriteStream
  readonly stderr: WriteStream
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The three streams of this process and what they can do. */
export class Terminal {
  readonly stdin: ReadStream
  readonly stdout: WriteStream
  readonly stderr: WriteStream
  readonly env: Readonly<Record<string, string | undefined>>
  #whenBroken: ((fault: Fault) => void) | undefined

  constructor({ stdin, stdout, stderr, env }: TerminalParts) {
    this.stdin = stdin
    this.stdout = stdout
    this.stderr = stderr
    this.env = env
    // Nobody reads any more (`| head`): what is being done for them ends, and it is no failure of ours to report.
    stdout.on("error", (cause) => this.#whenBroken?.(new Fault("cancelled", "nobody reads the output", { cause })))
    stderr.on("error", () => undefined)
  }

  /** Whether a person sits at both ends. */
  get isInteractive(): boolean {
    return this.stdin.isTTY && this.stdout.isTTY
  }

  get window(): { cols: number; rows: number } {
    return { cols: this.stdout.columns || 80, rows: this.stdout.rows || 24 }
  }

  onBroken(act: (fault: Fault) => void): void {
    this.#whenBroken = act
  }

  /** Colours are for terminals, and for people who want them. */
  paint(stream: WriteStream, colour: Colour, text: string): string {
    const isWanted = stream.isTTY && !this.env["NO_COLOR"] && this.env["TERM"] !== "dumb"
    return isWanted && text !== "" ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text
  }
}

/** Resolves when the bytes are out of our hands, so that their memory may be used again. */
export function writeOut(stream: WriteStream, bytes: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (failure) => {
      if (failure) reject(new Fault("cancelled", "nobody reads the output", { cause: failure }))
      else resolve()
    })
  })
}
