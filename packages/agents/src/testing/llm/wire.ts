import type { Said, Step } from "./step.ts"

export type Body = Readonly<Record<string, unknown>>

/** How one kind of API says what all of them mean. */
export interface Wire {
  readonly name: "chat" | "responses" | "messages"
  readonly path: RegExp
  said(body: Body): Said[]
  /** Events of a stream; `cut` ends it in the middle. */
  answer(
    step: Extract<Step, { text: string } | { tool: string } | { cut: string }>,
    of: { readonly id: number; readonly model: string },
  ): Generator<object | "cut", void, void>
  failure(status: number, message: string): object
}

export function joined(content: unknown): string {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return (content as Body[]).map(({ text }) => (typeof text === "string" ? text : "")).join("\n")
}
