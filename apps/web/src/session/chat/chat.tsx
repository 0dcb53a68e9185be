import type { SessionInfo } from "@warren/sdk/session.ts"
import { useState, type ReactElement } from "react"
import { EmptyState, Failure, Waiting } from "../../parts/empty-state.tsx"
import { Icon } from "../../parts/icon.tsx"
import { ForkDialog } from "../fork-dialog.tsx"
import type { ChatState } from "./chat-state.ts"
import { Composer } from "./composer.tsx"
import { MessageList } from "./message-list.tsx"
import { Thinking } from "./message.tsx"
import { QuestionCard } from "./question-card.tsx"
import { useChat } from "./use-chat.ts"
import "../../style/chat.css"

/** What is said with the agent of a session, and where to say more. */
export function Chat({ session }: { readonly session: SessionInfo }): ReactElement {
  const { state, fault, earlier, again } = useChat(session.id)
  const [turn, forkFrom] = useState<string>()
  if (fault) return <Failure fault={fault} retry={again} />
  if (!state) return <Waiting>Reading the conversation…</Waiting>
  return (
    <div className="chat">
      {state.messages.length === 0 && state.steps.length === 0 ? (
        <Nothing session={session} state={state} />
      ) : (
        <MessageList earlier={earlier} fork={forkFrom} state={state}>
          <End session={session} state={state} />
        </MessageList>
      )}
      <Composer renewed={again} session={session} state={state} />
      {turn !== undefined && <ForkDialog close={() => forkFrom(undefined)} session={session} turn={turn} />}
    </div>
  )
}

function Nothing({
  session,
  state: { agent },
}: {
  readonly session: SessionInfo
  readonly state: ChatState
}): ReactElement {
  if (agent.status === "error") {
    return <EmptyState title="The agent did not start">{agent.detail ?? "Write something to try again."}</EmptyState>
  }
  if (session.agent?.adapter === "scripted") {
    return (
      <EmptyState title="A scripted agent is here">
        It has no model and cannot think, but it needs no key and shows how everything works. Say hello.
      </EmptyState>
    )
  }
  return <EmptyState title="Nothing was said yet">Say what you want done; the agent begins at once.</EmptyState>
}

function End({ session, state }: { readonly session: SessionInfo; readonly state: ChatState }): ReactElement {
  const { agent, steps, notice, messages } = state
  const isOpen = messages.at(-1)?.role === "assistant" && messages.at(-1)?.state === "open"
  const isThinking = agent.status !== "idle" && agent.status !== "error" && !isOpen && agent.questions.length === 0
  return (
    <>
      {steps.some((step) => step.state !== "done") && <Steps steps={steps} />}
      {isThinking && session.state === "running" && <Thinking />}
      {notice && (
        <p className="notice">
          <Icon name="warning" size={14} /> {notice}
        </p>
      )}
      {agent.status === "error" && agent.detail && (
        <p className="notice" role="alert">
          <Icon name="warning" size={14} /> {agent.detail}
        </p>
      )}
      {agent.questions.map((question, index) => (
        <QuestionCard isFirst={index === 0} key={question.id} question={question} session={session.id} />
      ))}
      {session.state === "hibernated" && (
        <p className="notice">
          <Icon name="moon" size={14} /> Asleep. Write something, and it wakes.
        </p>
      )}
    </>
  )
}

function Steps({ steps }: Pick<ChatState, "steps">): ReactElement {
  return (
    <ul className="steps">
      {steps.map(({ step, state, detail, percent }) => (
        <li data-state={state} key={step}>
          <Icon name={state === "failed" ? "close" : state === "done" ? "check" : "chevron"} size={12} />
          {step}
          <span className="soft">{[percent !== undefined && `${percent} %`, detail].filter(Boolean).join(" · ")}</span>
        </li>
      ))}
    </ul>
  )
}
