import { Fault } from "@warren/base/fault.ts"
import { useState } from "react"
import { useLocation } from "wouter"
import { http } from "../../data/api.ts"
import { putSession, sessions } from "../../data/sessions.ts"
import { toast } from "../../parts/toast.tsx"
import { channel } from "../../session/chat/chat-state.ts"
import { specOf } from "../../session/agent-wishes.ts"
import { sessionWishes, type Wishes } from "./wishes.ts"

interface NewSession {
  /** What is under way, in words. */
  readonly step: string | undefined
  readonly fault: Fault | undefined
  start(wishes: Wishes): void
}

/** Makes a session, gives it its agent, and says the first thing to it. Its page is opened as soon as there is something to see. */
export function useNewSession(secrets: readonly string[]): NewSession {
  const [step, setStep] = useState<string>()
  const [fault, setFault] = useState<Fault>()
  const [, go] = useLocation()
  const run = async (wishes: Wishes): Promise<void> => {
    setFault(undefined)
    setStep("Starting the sandbox…")
    const asked = sessionWishes(wishes, secrets)
    const session = await http.make("POST /v1/sessions", asked)
    putSession(session.id, session)
    const spec = specOf(wishes, asked.keys ?? [])
    if (!spec) return go(`/s/${session.name}/terminal`)
    setStep("Starting the agent…")
    const { repo, branch, prompt } = wishes
    const provision = { ...(repo ? { repo } : {}), ...(repo && branch ? { branch } : {}) }
    const started = http.call("POST /v1/sessions/{session}/agent", { session: session.id, spec, ...provision })
    const text = prompt.trim()
    const said = started.then(() => {
      if (text !== "")
        return http.call("POST /v1/sessions/{session}/agent/prompts", { session: session.id, text, channel })
    })
    // From here on everything is shown in the conversation, where it belongs.
    await Promise.race([said, untilAgent(session.id)])
    said.catch(toast.fault)
    go(`/s/${session.name}`)
  }
  const start = (wishes: Wishes): void => {
    void run(wishes)
      .catch((thrown: unknown) => setFault(Fault.from(thrown)))
      .finally(() => setStep(undefined))
  }
  return { step, fault, start }
}

/** Resolves when the session is known to have its agent, ready or not. */
function untilAgent(id: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!sessions.value?.get(id)?.agent) return
      leave()
      resolve()
    }
    const leave = sessions.watch(look)
    look()
  })
}
