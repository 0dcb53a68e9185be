import { messageOf } from "@warren/base/fault.ts"
import { partBytesMax } from "@warren/protocol/hub/words.ts"
import { canceled, failed, type AgentEvent, type Prompt } from "../adapter.ts"
import type { Launch, ProcessGroup } from "../process-group.ts"
import type { ProcessGroups } from "../process-groups.ts"
import { textLines, textPieces } from "../text-lines.ts"

/** The kernel takes no longer argument; a longer prompt comes on the standard input. */
const argumentBytesMax = 100 * 1024
const abortGraceMs = 500
const complaintCharsMax = 4_096

/** A turn of a program that is started for it: the prompt is its last argument, what it prints is the answer. */
export async function* linesTurn(
  groups: ProcessGroups,
  launch: Launch,
  { content }: Prompt,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, void> {
  if (signal.aborted) return yield canceled
  const isArgument = Buffer.byteLength(content) <= argumentBytesMax && !content.includes("\0")
  const begun = performance.now()
  let group: ProcessGroup
  try {
    group = await groups.start({ ...launch, args: isArgument ? [...launch.args, content] : launch.args })
  } catch (failure) {
    return yield failed("start", messageOf(failure))
  }
  const abort = (): void => void group.stop(abortGraceMs)
  signal.addEventListener("abort", abort, { once: true })
  if (signal.aborted) abort()
  try {
    group.stdin.end(isArgument ? "" : content)
    const complaint = tailOf(group)
    // As it comes, not line by line: a program that prints a lot is told in few words.
    for await (const text of textPieces(group.stdout, partBytesMax / 4)) yield { type: "text", text }
    const exit = await group.exited
    if (signal.aborted) return yield canceled
    const usage = { durationMs: Math.round(performance.now() - begun) }
    if (exit.code === 0) return yield { type: "end", reason: "end_turn", usage }
    const how = exit.signal === null ? `it ended with ${exit.code}` : `it was ended by ${exit.signal}`
    yield failed("verdict", `${how}${await complaint}`, usage)
  } finally {
    signal.removeEventListener("abort", abort)
    await group.stop(abortGraceMs)
  }
}

async function tailOf({ stderr }: ProcessGroup): Promise<string> {
  let tail = ""
  for await (const line of textLines(stderr, complaintCharsMax)) tail = (tail + line).slice(-complaintCharsMax)
  return tail === "" ? "" : `: ${tail.trim()}`
}
