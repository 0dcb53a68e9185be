import type { SessionInfo } from "@warren/sdk/session.ts"
import { useLocation } from "wouter"
import { useAsk } from "../../data/query.ts"
import { putSession } from "../../data/sessions.ts"
import { channel } from "./chat-state.ts"

/** What can be asked for by writing it. */
export const commands = [
  ["/stop", "end what the agent does, and what waits"],
  ["/new", "begin a new conversation; this one stays to be read"],
  ["/fork", "another session with these files"],
  ["/hibernate", "stop its programs, keep its files"],
  ["/pause", "freeze everything in it"],
] as const

export type Command = (typeof commands)[number][0]

/** The command a text is; most texts are none, also some that begin like one. */
export function commandOf(text: string): Command | undefined {
  return commands.find(([name]) => name === text.trim())?.[0]
}

export function useCommand({ id }: SessionInfo, renewed: () => void): (command: Command) => void {
  const [, go] = useLocation()
  const told = { done: (changed: SessionInfo) => putSession(id, changed) }
  const abort = useAsk("POST /v1/sessions/{session}/agent/abort")
  const renew = useAsk("POST /v1/sessions/{session}/agent/renew", { done: renewed })
  const hibernate = useAsk("POST /v1/sessions/{id}/hibernate", told)
  const pause = useAsk("POST /v1/sessions/{id}/pause", told)
  const fork = useAsk("POST /v1/sessions/{id}/fork", { done: ({ sessions: [made] }) => made && go(`/s/${made.name}`) })
  const acts: Readonly<Record<Command, () => void>> = {
    "/stop": () => abort.mutate({ session: id, queued: true }),
    "/new": () => renew.mutate({ session: id, channel }),
    "/fork": () => fork.mutate({ id }),
    "/hibernate": () => hibernate.mutate({ id }),
    "/pause": () => pause.mutate({ id }),
  }
  return (command) => acts[command]()
}
