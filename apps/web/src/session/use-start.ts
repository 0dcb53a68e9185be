import type { Input } from "@warren/sdk/routes.ts"
import { useLocation } from "wouter"
import { useAsk } from "../data/query.ts"
import { putSession } from "../data/sessions.ts"

interface Start {
  readonly isPending: boolean
  /** An empty sandbox unless something is wished for. */
  start(wishes?: Input<"POST /v1/sessions">): void
}

/** One click: a session without an agent, and one of its views. */
export function useStart(tab: "terminal" | "files"): Start {
  const [, go] = useLocation()
  const create = useAsk("POST /v1/sessions", {
    done: (session) => {
      putSession(session.id, session)
      go(`/s/${session.name}/${tab}`)
    },
  })
  return { isPending: create.isPending, start: (wishes = {}) => create.mutate(wishes) }
}
