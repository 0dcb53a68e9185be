import { isUtf8 } from "node:buffer"
import { streamTags } from "@warren/base/frame.ts"
import type { Chunk } from "@warren/protocol/conversation.ts"
import { writeOut, type Terminal } from "../terminal/terminal.ts"

/** Where a program's output goes. */
export interface Sink {
  take(chunk: Chunk): Promise<void>
}

/** Byte for byte to the same stream of this process. */
export function toTerminal({ stdout, stderr }: Terminal): Sink {
  return { take: ({ tag, bytes }) => writeOut(tag === streamTags.stderr ? stderr : stdout, bytes) }
}

/** Kept, for one answer in JSON. The runner ends the program before this grows beyond what it was asked for. */
export class Kept implements Sink {
  readonly #stdout: Buffer[] = []
  readonly #stderr: Buffer[] = []

  take({ tag, bytes }: Chunk): Promise<void> {
    const kept = tag === streamTags.stderr ? this.#stderr : this.#stdout
    kept.push(Buffer.from(bytes))
    return Promise.resolve()
  }

  /** Text as text; what is not UTF-8 in base64. */
  toData(): Record<string, string> {
    return { ...shown("stdout", Buffer.concat(this.#stdout)), ...shown("stderr", Buffer.concat(this.#stderr)) }
  }
}

function shown(name: string, bytes: Buffer): Record<string, string> {
  return isUtf8(bytes) ? { [name]: bytes.toString() } : { [`${name}Base64`]: bytes.toString("base64") }
}
