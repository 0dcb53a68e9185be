import type { ChatPart } from "@warren/protocol/user-plane/chat.ts"
import type { z } from "zod"

export type Part = z.output<typeof ChatPart>

/** What can happen to a message that is still open. */
export type Change =
  /** More of a text: of the last part if it is of that type, otherwise a new part begins. */
  | { readonly kind: "text"; readonly type: "text" | "reasoning"; readonly text: string }
  /** A new part; a tool's replaces the one with the same `callId`. */
  | { readonly kind: "part"; readonly part: Part }

/** The parts after these changes, in order. */
export function fold(parts: readonly Part[], changes: Iterable<Change>): Part[] {
  const folded = [...parts]
  let growing: { type: "text" | "reasoning"; texts: string[] } | undefined
  // Joined once at the end: a long answer comes in thousands of pieces.
  const settle = (): void => {
    if (growing) folded.push({ type: growing.type, text: growing.texts.join("") })
    growing = undefined
  }
  for (const change of changes) {
    if (change.kind === "part") {
      settle()
      place(folded, change.part)
    } else if (growing?.type === change.type) growing.texts.push(change.text)
    else {
      settle()
      const last = folded.at(-1)
      const before = last?.type === change.type ? [last.text] : []
      if (before.length > 0) folded.pop()
      growing = { type: change.type, texts: [...before, change.text] }
    }
  }
  settle()
  return folded
}

function place(parts: Part[], part: Part): void {
  const at =
    part.type === "tool" ? parts.findIndex((other) => other.type === "tool" && other.callId === part.callId) : -1
  if (at >= 0) parts[at] = part
  else parts.push(part)
}
