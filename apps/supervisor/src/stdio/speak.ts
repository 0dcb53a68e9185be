import type { Readable, Writable } from "node:stream"
import { StringDecoder } from "node:string_decoder"
import { drained } from "@warren/base/drained.ts"
import { stdioLimits, type StdioEvent } from "@warren/protocol/supervisor/lines.ts"

/** One event, one line. */
export async function speak(output: Writable, event: StdioEvent): Promise<void> {
  if (output.destroyed || output.write(`${JSON.stringify(event)}\n`)) return
  await drained(output)
}

/** Lines as they come; one that is too long is told of instead, once. */
export async function* hear(input: Readable): AsyncGenerator<string | { readonly tooLong: true }, void, void> {
  const decoder = new StringDecoder("utf8")
  let rest = ""
  let isSkipping = false
  for await (const piece of input) {
    const lines = (rest + decoder.write(piece as Buffer)).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (isSkipping) isSkipping = false
      else yield line.length > stdioLimits.lineBytesMax ? { tooLong: true } : line
    }
    if (rest.length <= stdioLimits.lineBytesMax) continue
    if (!isSkipping) yield { tooLong: true }
    isSkipping = true
    rest = ""
  }
  if (rest !== "" && !isSkipping) yield rest
}
