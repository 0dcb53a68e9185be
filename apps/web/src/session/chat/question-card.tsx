import { useEffect, type ReactElement } from "react"
import { useAsk } from "../../data/query.ts"
import { isFree } from "../../frame/shortcuts.tsx"
import type { Question } from "./chat-state.ts"
import { Markdown } from "./markdown.tsx"

interface QuestionCardProps {
  readonly session: string
  readonly question: Question
  /** Its numbers are keys. */
  readonly isFirst: boolean
}

const keysMax = 9

/** Something the agent wants to know: a button for each answer, with its key. */
export function QuestionCard({ session, question, isFirst }: QuestionCardProps): ReactElement {
  const { id, text, options = [] } = question
  const answer = useAsk("POST /v1/sessions/{session}/agent/questions/{questionId}")
  const { mutate, isPending } = answer
  useEffect(() => {
    if (!isFirst) return
    const pressed = (event: KeyboardEvent): void => {
      const chosen = isUntyped(event) ? options[Number(event.key) - 1] : undefined
      if (chosen === undefined || isPending) return
      event.preventDefault()
      mutate({ session, questionId: id, answer: chosen })
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [isFirst, options, isPending, mutate, session, id])
  return (
    <section aria-label="The agent asks" className="question">
      <Markdown text={text} />
      <div className="question-options">
        {options.map((option, index) => (
          <button
            className="button"
            disabled={isPending}
            key={option}
            onClick={() => mutate({ session, questionId: id, answer: option })}
            type="button"
          >
            {isFirst && index < keysMax && <kbd>{index + 1}</kbd>}
            {option}
          </button>
        ))}
      </div>
      <p className="soft tiny">{options.length > 0 ? "Or write another answer below." : "Write your answer below."}</p>
    </section>
  )
}

/** A number is an answer where nobody writes, and where somebody could but has written nothing. */
function isUntyped(event: KeyboardEvent): boolean {
  const { target } = event
  const isEmpty =
    target instanceof HTMLTextAreaElement && target.value === "" && !event.ctrlKey && !event.metaKey && !event.altKey
  return isFree(event) || isEmpty
}
