import type { Readable } from "node:stream"
import { StringDecoder } from "node:string_decoder"

/** Text in lines, each with its newline; a line that is longer than `bytesMax` comes in pieces. Letters are never cut. */
export async function* textLines(stream: Readable, bytesMax: number): AsyncGenerator<string, void, void> {
  const decoder = new StringDecoder("utf8")
  let rest = ""
  for await (const piece of stream) {
    rest += decoder.write(piece as Buffer)
    let from = 0
    for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n", from)) {
      yield* pieces(rest.slice(from, at + 1), bytesMax)
      from = at + 1
    }
    rest = rest.slice(from)
    if (rest.length < bytesMax) continue
    yield rest
    rest = ""
  }
  rest += decoder.end()
  if (rest !== "") yield* pieces(rest, bytesMax)
}

/** Text as it comes, in pieces of at most `charsMax`. */
export async function* textPieces(stream: Readable, charsMax: number): AsyncGenerator<string, void, void> {
  const decoder = new StringDecoder("utf8")
  for await (const piece of stream) {
    const text = decoder.write(piece as Buffer)
    if (text !== "") yield* pieces(text, charsMax)
  }
  const rest = decoder.end()
  if (rest !== "") yield rest
}

function* pieces(line: string, bytesMax: number): Generator<string> {
  for (let from = 0; from < line.length;) {
    let to = Math.min(line.length, from + bytesMax)
    // Not between the two halves of a letter.
    if (to < line.length && isHighHalf(line.charCodeAt(to - 1))) to--
    yield line.slice(from, to)
    from = to
  }
}

function isHighHalf(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
