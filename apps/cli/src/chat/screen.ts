import { withoutColours } from "../terminal/plain.ts"
import { endingOf, harmless, questionLines, toolLine, toolResult, type Painter } from "./lines.ts"
import type { Message, Question } from "./transcript.ts"

export interface Shown {
  readonly title: string
  readonly status: string
  readonly messages: readonly Message[]
  readonly questions: readonly Question[]
  /** What is being typed. */
  readonly typed: string
  /** Lines above the newest that the person has gone back. */
  readonly back: number
  readonly notice?: string | undefined
}

interface Size {
  readonly cols: number
  readonly rows: number
}

/** A whole screen, line by line: a title, as much of the chat as there is room for, and what is being typed. */
export function screenOf(shown: Shown, { cols, rows }: Size, painter: Painter): string[] {
  const width = Math.max(10, cols)
  const height = Math.max(1, rows - 3)
  const lines = [
    ...shown.messages.flatMap((message) => messageLines(message, painter)),
    ...shown.questions.flatMap((question) => questionLines(question, painter)),
  ].flatMap((line) => wrapped(line, width))
  const back = Math.min(shown.back, Math.max(0, lines.length - height))
  const seen = lines.slice(Math.max(0, lines.length - height - back), lines.length - back)
  const room = Array.from({ length: height - seen.length }, () => "")
  const below =
    back > 0 ? `↓ ${back} more` : (shown.notice ?? "Enter says it · Ctrl-C aborts, or leaves · PgUp goes back")
  return [
    cut(`${painter.paint("bold", harmless(shown.title))}  ${painter.paint("dim", shown.status)}`, width),
    ...room,
    ...seen,
    painter.paint("dim", below.slice(0, width)),
    // The end of what is typed is what one looks at.
    `› ${Array.from(shown.typed)
      .slice(-(width - 3))
      .join("")}`,
  ]
}

function messageLines(message: Message, painter: Painter): string[] {
  if (message.isReverted) return []
  const isUser = message.role === "user"
  const lines = message.parts.flatMap((part): string[] => {
    if (part.type === "tool") return [toolLine(part, painter), ...toolResult(part, painter)]
    if (part.type === "error") return [painter.paint("red", harmless(part.message))]
    if (part.type === "file") return [painter.paint("dim", `[${harmless(part.name)}]`)]
    const text = harmless(part.text).replace(/\n+$/, "").replaceAll("\t", "    ")
    return text.split("\n").map((line) => {
      if (isUser) return painter.paint("bold", `› ${line}`)
      return part.type === "reasoning" ? painter.paint("dim", line) : line
    })
  })
  const ending = endingOf(message)
  return [...lines, ...(ending === undefined ? [] : [painter.paint("dim", ending)]), ""]
}

/** In pieces that fit; a line with colours of ours in it is never cut inside one of them. */
function wrapped(line: string, width: number): string[] {
  const bare = withoutColours(line)
  if (bare.length <= width) return [line]
  // eslint-disable-next-line no-control-regex -- It is about our own colours.
  const [, before = "", after = ""] = /^(\u001b\[\d*m)[^\u001b]*(\u001b\[0m)$/.exec(line) ?? []
  const pieces: string[] = []
  const letters = Array.from(bare)
  for (let at = 0; at < letters.length;) {
    const piece = letters.slice(at, at + width)
    const space = piece.length === width && at + width < letters.length ? piece.lastIndexOf(" ") : -1
    const taken = space > width / 2 ? space + 1 : piece.length
    pieces.push(`${before}${piece.slice(0, taken).join("").trimEnd()}${after}`)
    at += taken
  }
  return pieces
}

function cut(line: string, width: number): string {
  return withoutColours(line).length <= width ? line : withoutColours(line).slice(0, width)
}
