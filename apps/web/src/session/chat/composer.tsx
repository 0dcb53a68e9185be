import { Fault } from "@warren/base/fault.ts"
import type { SessionInfo } from "@warren/sdk/session.ts"
import { useEffect, useRef, type KeyboardEvent, type ReactElement } from "react"
import { useAsk } from "../../data/query.ts"
import { isFree } from "../../frame/shortcuts.tsx"
import { Button } from "../../parts/button.tsx"
import { channel, type ChatState } from "./chat-state.ts"
import { commandOf, commands, useCommand } from "./commands.ts"
import { useDraft } from "./draft.ts"
import { ModelPicker, useModel } from "./model-picker.tsx"

interface ComposerProps {
  readonly session: SessionInfo
  readonly state: ChatState
  /** Another conversation was begun. */
  renewed(): void
}

/** Where one writes. What is written is kept until it was taken. */
export function Composer({ session, state, renewed }: ComposerProps): ReactElement {
  const { agent } = state
  const [draft, setDraft] = useDraft(session.id)
  const [model, setModel] = useModel(session.id, agent.models)
  const writing = useRef<HTMLTextAreaElement>(null)
  const [question] = agent.questions
  const isBusy = agent.prompts.length > 0
  const run = useCommand(session, renewed)
  // Kept on this page until it is known to have arrived; tried again with the same name it is still one prompt.
  const failed = (text: string) => () => setDraft((now) => (now === "" ? text : now))
  const prompt = useAsk("POST /v1/sessions/{session}/agent/prompts")
  const answer = useAsk("POST /v1/sessions/{session}/agent/questions/{questionId}")
  const abort = useAsk("POST /v1/sessions/{session}/agent/abort")
  const send = (mode: "followup" | "steer"): void => {
    const text = draft.trim()
    if (text === "") return
    const command = commandOf(text)
    setDraft("")
    if (command) return run(command)
    const onError = failed(text)
    if (question) return answer.mutate({ session: session.id, questionId: question.id, answer: text }, { onError })
    const wishes = { mode, messageId: crypto.randomUUID(), ...(model ? { model } : {}) }
    prompt.mutate({ session: session.id, text, channel, ...wishes }, { onError })
  }
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault()
      send(event.ctrlKey || event.metaKey ? "steer" : "followup")
    }
    if (event.key === "Escape" && isBusy) abort.mutate({ session: session.id })
  }
  useReplyKey(writing)
  useHeight(writing, draft)
  return (
    <div className="composer">
      {draft.startsWith("/") && <Commands typed={draft} />}
      <div className="composer-box">
        <textarea
          aria-label={question ? "Your answer" : "Reply to the agent"}
          onChange={({ target }) => setDraft(target.value)}
          onKeyDown={pressed}
          placeholder={placeholderOf(session, question !== undefined, isBusy)}
          ref={writing}
          rows={1}
          value={draft}
        />
        <div className="composer-ends">
          <ModelPicker choose={setModel} model={model} models={agent.models} />
          <span className="spread" />
          {isBusy && (
            <Button
              icon="stop"
              isBusy={abort.isPending}
              onClick={() => abort.mutate({ session: session.id })}
              size="small"
              title="Esc"
            >
              Stop
            </Button>
          )}
          <Button
            disabled={draft.trim() === ""}
            icon="up"
            kind="main"
            onClick={() => send("followup")}
            size="small"
            title={isBusy ? "Enter: waits for its turn. Ctrl Enter: at once" : "Enter"}
          >
            {question ? "Answer" : isBusy ? "Queue" : "Send"}
          </Button>
        </div>
      </div>
      {prompt.error && Fault.from(prompt.error).code === "unavailable" && (
        <p className="tiny soft">It was not sent; what you wrote is still here.</p>
      )}
    </div>
  )
}

function placeholderOf({ state }: SessionInfo, isAsked: boolean, isBusy: boolean): string {
  if (isAsked) return "Your answer"
  if (state === "hibernated" || state === "stopped") return "Write to wake it"
  return isBusy ? "Add to what it does next" : "Reply, or / for commands"
}

function Commands({ typed }: { readonly typed: string }): ReactElement {
  return (
    <ul aria-label="Commands" className="commands">
      {commands
        .filter(([name]) => name.startsWith(typed.trim()) || typed.startsWith(name))
        .map(([name, means]) => (
          <li key={name}>
            <b className="mono">{name}</b> <span className="soft">{means}</span>
          </li>
        ))}
    </ul>
  )
}

function useReplyKey(writing: React.RefObject<HTMLTextAreaElement | null>): void {
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== "r" || !isFree(event)) return
      event.preventDefault()
      writing.current?.focus()
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [writing])
}

const highestPx = 240

/** As high as what stands in it. */
function useHeight(writing: React.RefObject<HTMLTextAreaElement | null>, draft: string): void {
  useEffect(() => {
    const { current } = writing
    if (!current) return
    current.style.height = "auto"
    current.style.height = `${Math.min(highestPx, current.scrollHeight)}px`
  }, [writing, draft])
}
