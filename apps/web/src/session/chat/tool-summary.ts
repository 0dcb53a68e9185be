import type { ToolPart } from "./chat-state.ts"

type Args = Readonly<Record<string, unknown>>

/** The fields that say most about a call, in the words of the agents we know. */
const telling = [
  "command",
  "cmd",
  "filePath",
  "file_path",
  "path",
  "pattern",
  "query",
  "url",
  "description",
  "prompt",
  "name",
]

export function argsOf({ args }: ToolPart): Args {
  return typeof args === "object" && args !== null && !Array.isArray(args) ? args : {}
}

/** What a tool was used for, on one line. */
export function summaryOf(part: ToolPart): string {
  const args = argsOf(part)
  const found = telling.map((name) => args[name]).find((value) => typeof value === "string" && value !== "")
  const text = typeof found === "string" ? found : typeof part.args === "string" ? part.args : ""
  return text
    .replace(/^\/workspace\//, "")
    .replaceAll(/\s+/g, " ")
    .trim()
}

export interface Edit {
  readonly before: string
  readonly after: string
}

/** The change a call makes to a file, if it is one that says so. */
export function editOf(part: ToolPart): Edit | undefined {
  const args = argsOf(part)
  const before = args["oldString"] ?? args["old_string"] ?? args["oldText"]
  const after = args["newString"] ?? args["new_string"] ?? args["newText"]
  if (typeof before === "string" && typeof after === "string") return { before, after }
  const content = args["content"] ?? args["file_text"]
  const isWrite = /^(write|create)/i.test(part.tool)
  return isWrite && typeof content === "string" ? { before: "", after: content } : undefined
}

/** What a tool answered, as text. */
export function resultOf({ result, error }: ToolPart): string {
  const said = typeof result === "string" ? result : result === undefined ? "" : JSON.stringify(result, null, 2)
  return [said, error].filter((text) => text !== undefined && text !== "").join("\n")
}
