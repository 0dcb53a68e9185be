import type { Message, Part, Question } from "./transcript.ts"
import type { Colour } from "../terminal/terminal.ts"

/* eslint-disable no-control-regex -- It is about control characters. */

export interface Painter {
  paint(colour: Colour, text: string): string
}

/** What somebody else wrote: it may have lines and tabs, and steers no terminal. */
export function harmless(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
}

const resultLinesMax = 5
const marks = { pending: "○", running: "○", completed: "●", error: "✗" } as const
const markColours = { pending: "dim", running: "yellow", completed: "green", error: "red" } as const

type Tool = Extract<Part, { type: "tool" }>

/** What a tool was asked, in one line. */
export function toolLine({ tool, args, status }: Tool, painter: Painter): string {
  const asked =
    typeof args === "object" && args !== null && !Array.isArray(args) ? (Object.values(args)[0] ?? "") : (args ?? "")
  const text = harmless(typeof asked === "string" ? asked : JSON.stringify(asked)).split("\n")[0] ?? ""
  return `${painter.paint(markColours[status], marks[status])} ${painter.paint("bold", harmless(tool))} ${text.slice(0, 200)}`.trimEnd()
}

/** What came of it: its first lines. */
export function toolResult({ result, error, status }: Tool, painter: Painter): string[] {
  if (status !== "completed" && status !== "error") return []
  const text = result === undefined ? "" : typeof result === "string" ? result : JSON.stringify(result)
  const lines = harmless(text).trimEnd().split("\n")
  const shown = lines.slice(0, resultLinesMax).map((line) => painter.paint("dim", `  ${line.slice(0, 500)}`))
  const more =
    lines.length > resultLinesMax ? [painter.paint("dim", `  … ${lines.length - resultLinesMax} more lines`)] : []
  const failed = error === undefined ? [] : [painter.paint("red", `  ${harmless(error)}`)]
  return [...(text === "" ? [] : shown), ...more, ...failed]
}

const endings: Readonly<Record<string, string>> = { canceled: "aborted", lost: "lost", error: "failed" }

/** How a message ended, when it did not end as it should. */
export function endingOf({ reason, cause }: Message): string | undefined {
  const word = reason === undefined ? undefined : endings[reason]
  return word === undefined
    ? undefined
    : `— ${word}${cause === undefined || cause === "cancelled" ? "" : ` (${cause})`}`
}

export function questionLines({ text, options = [] }: Question, painter: Painter): string[] {
  return [
    painter.paint("yellow", `? ${harmless(text)}`),
    ...options.map((option, index) => `  ${painter.paint("bold", String(index + 1))} ${harmless(option)}`),
  ]
}

/** A number is the option with that number; anything else is the answer itself. */
export function answerOf({ options = [] }: Question, typed: string): string {
  const chosen = /^\d{1,2}$/.test(typed.trim()) ? options[Number(typed.trim()) - 1] : undefined
  return chosen ?? typed
}
