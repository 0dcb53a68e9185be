import type { AgentEvent, TurnEnd } from "@warren/agents/adapter.ts"
import type { HubUp } from "@warren/protocol/hub/messages.ts"
import { partBytesMax } from "@warren/protocol/hub/words.ts"

interface Turn {
  readonly turnId: string
  readonly messageId: string
  readonly channel: string
}

const partCharsMax = partBytesMax / 4
const errorCharsMax = 8_192

/** What happened in a turn, as the hub is told. */
export function* toldOf(
  event: Exclude<AgentEvent, TurnEnd>,
  { turnId, messageId, channel }: Turn,
): Generator<HubUp, void, void> {
  switch (event.type) {
    case "text":
      for (const delta of pieces(event.text))
        yield {
          type: "message.part.text-delta",
          turnId,
          delta,
          ...(event.part === "reasoning" ? { part: event.part } : {}),
        }
      return
    case "tool": {
      const { type: _, ...call } = event
      return yield { type: "message.part.tool-update", turnId, ...short(call) }
    }
    case "question":
      return yield { ...event, turnId }
    case "title":
      return yield { type: "title", channel, title: event.title.slice(0, 256) }
    case "files":
      return yield { type: "files-changed", paths: event.paths.slice(0, 1_000) }
    case "switched":
      return yield { type: "model-switched", messageId, from: event.from, to: event.to, cause: event.cause }
  }
}

export function finalOf(end: TurnEnd, { turnId, messageId }: Turn): HubUp {
  const { reason, cause, error, usage } = end
  return {
    type: "message.finalize",
    ...{ turnId, messageId, reason },
    ...(cause === undefined ? {} : { cause }),
    ...(error === undefined ? {} : { error: error.slice(0, errorCharsMax) }),
    ...(usage === undefined ? {} : { usage }),
  }
}

/** Not between the two halves of a letter. */
function* pieces(text: string): Generator<string, void, void> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + partCharsMax)
    const last = text.charCodeAt(to - 1)
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to--
    yield text.slice(from, to)
    from = to
  }
}

type Call = Omit<Extract<AgentEvent, { type: "tool" }>, "type">

/** A message holds only so much: what is too long is shown as its beginning. */
function short(call: Call): Call {
  const cut = <T>(value: T): T | string => {
    const text = typeof value === "string" ? value : JSON.stringify(value)
    return text !== undefined && text.length > partCharsMax ? `${text.slice(0, partCharsMax)}…` : value
  }
  const { args, result, error, ...rest } = call
  return {
    ...rest,
    ...(args === undefined ? {} : { args: cut(args) }),
    ...(result === undefined ? {} : { result: cut(result) }),
    ...(error === undefined ? {} : { error: cut(error) }),
  }
}
