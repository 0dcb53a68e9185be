import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"

/** One click: a session without an agent, and its terminal. */
export function useEmptySandbox(): { readonly isPending: boolean; start(): void } {
  const [, go] = useLocation()
  const create = useAsk("POST /v1/sessions", {
    done: (session) => {
      putSession(session.id, session)
      go(`/s/${session.name}/terminal`)
    },
  })
  return { isPending: create.isPending, start: () => create.mutate({}) }
}
