import { memo, useState, type ReactElement } from "react"
import { Icon } from "../../parts/icon.tsx"
import { duration } from "../../parts/when.tsx"
import type { ChatState, Message as ChatMessage, Part } from "./chat-state.ts"
import { Markdown } from "./markdown.tsx"
import { ToolCall } from "./tool-call.tsx"

interface MessageProps {
  readonly message: ChatMessage
  readonly tools: ChatState["tools"]
  /** It waits for its turn. */
  readonly isQueued: boolean
  /** Offers another way from the end of its turn. */
  readonly fork?: ((messageId: string) => void) | undefined
}

const names: Readonly<Record<ChatMessage["role"], string>> = { user: "You", assistant: "Agent", system: "Warren" }

/** What one side said. */
export const Message = memo(function Message({ message, tools, isQueued, fork }: MessageProps): ReactElement {
  const { role, parts, state, isReverted } = message
  return (
    <article aria-label={names[role]} className="message" data-reverted={isReverted || undefined} data-role={role}>
      {parts.map((part, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- parts are only ever added at the end
        <PartView key={index} part={part} role={role} tools={tools} />
      ))}
      {role === "assistant" && state === "open" && parts.length === 0 && <Thinking />}
      {isQueued && <span className="badge">waits for its turn</span>}
      {isReverted && <span className="badge">taken back</span>}
      <Ending message={message} />
      {fork && isTurnsEnd(message) && (
        <button
          className="fork-here"
          onClick={() => fork(message.id)}
          title="Another session that knows what was said up to here"
          type="button"
        >
          <Icon name="fork" size={12} /> Fork from this turn
        </button>
      )}
    </article>
  )
})

/** A long answer takes several messages: the last of them knows how it ended. */
function isTurnsEnd({ role, state, isReverted, endedAt, reason }: ChatMessage): boolean {
  const isOver = role === "assistant" && state === "final" && !isReverted
  return isOver && (endedAt !== undefined || reason !== undefined)
}

interface PartViewProps {
  readonly part: Part
  readonly role: ChatMessage["role"]
  readonly tools: ChatState["tools"]
}

function PartView({ part, role, tools }: PartViewProps): ReactElement | null {
  switch (part.type) {
    case "text":
      return role === "user" ? <Said text={part.text} /> : <Markdown text={part.text} />
    case "reasoning":
      return <Reasoning text={part.text} />
    case "tool":
      return <ToolCall part={part} tookMs={tools.get(part.callId)?.tookMs} />
    case "file":
      return (
        <span className="badge">
          <Icon name="file" size={12} /> {part.name}
        </span>
      )
    case "error":
      return <p className="message-fault">{part.message}</p>
    default:
      // A newer Warren has kinds that this page does not know.
      return null
  }
}

const saidCharsMax = 1_200

/** What a person wrote, as they wrote it; something long that was pasted is cut until it is asked for. */
function Said({ text }: { readonly text: string }): ReactElement {
  const [isWhole, setWhole] = useState(text.length <= saidCharsMax)
  return (
    <p className="said">
      {isWhole ? text : `${text.slice(0, saidCharsMax / 2)}… `}
      {!isWhole && (
        <button className="more" onClick={() => setWhole(true)} type="button">
          Show all of it
        </button>
      )}
    </p>
  )
}

function Reasoning({ text }: { readonly text: string }): ReactElement {
  const [isOpen, open] = useState(false)
  return (
    <div className="reasoning">
      <button aria-expanded={isOpen} onClick={() => open(!isOpen)} type="button">
        <span className="tool-fold" data-open={isOpen}>
          <Icon name="chevron" size={12} />
        </span>
        <span className="cut">{isOpen ? "Thoughts" : (text.trim().split("\n")[0] ?? "Thoughts")}</span>
      </button>
      {isOpen && <Markdown text={text} />}
    </div>
  )
}

export function Thinking(): ReactElement {
  return (
    <p aria-label="The agent thinks" className="thinking" role="status">
      <i />
      <i />
      <i />
    </p>
  )
}

const causes: Readonly<Partial<Record<NonNullable<ChatMessage["cause"]>, string>>> = {
  transport: "the agent could not be reached",
  orphaned: "what drove the agent died",
  oom: "it needed more memory than the session has",
  timeout: "it took too long",
  limit: "a limit was reached",
  rate_limit: "the model's rate limit was reached",
  auth: "the model refused the key",
  billing: "the model's account has no credit",
  start: "the agent did not start",
}

/** How it ended, if not well; what it took, if that is known. */
function Ending({
  message: { role, state, reason, cause, usage },
}: Pick<MessageProps, "message">): ReactElement | null {
  if (role !== "assistant" || state === "open") return null
  const isBad = reason === "error" || reason === "lost"
  const why = (cause && causes[cause]) ?? "it failed"
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
  const facts = [
    reason === "canceled" && "stopped",
    usage?.model,
    tokens > 0 && `${tokens.toLocaleString()} tokens`,
    // Nothing is what those say who do not know.
    usage?.costUsd !== undefined && usage.costUsd > 0 && `$${usage.costUsd.toFixed(3)}`,
    usage?.durationMs !== undefined && duration(usage.durationMs),
  ].filter(Boolean)
  if (!isBad && facts.length === 0) return null
  return (
    <p className="ending">
      {isBad && <span className="message-fault">Ended: {why}.</span>} {facts.join(" · ")}
    </p>
  )
}
