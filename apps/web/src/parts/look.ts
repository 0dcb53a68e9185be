import type { SessionInfo } from "@warren/sdk/session.ts"

/** How a session looks from outside, in one word. */
export type Look = "working" | "asks" | "idle" | "paused" | "asleep" | "moving" | "over" | "failed"

const byState: Readonly<Record<SessionInfo["state"], Look>> = {
  starting: "moving",
  running: "idle",
  paused: "paused",
  hibernating: "moving",
  hibernated: "asleep",
  restoring: "moving",
  stopping: "moving",
  stopped: "over",
  failed: "failed",
}

export function lookOf({ state, agent }: SessionInfo): Look {
  if (agent && agent.questions > 0) return "asks"
  if (state === "running" && agent && agent.status !== "idle" && agent.status !== "error") return "working"
  return byState[state]
}

const words: Readonly<Record<Look, string>> = {
  working: "working",
  asks: "needs you",
  idle: "idle",
  paused: "paused",
  asleep: "asleep",
  moving: "",
  over: "stopped",
  failed: "failed",
}

/** The same in words, with the reason where something is wrong. */
export function lookInWords(session: SessionInfo): string {
  const look = lookOf(session)
  const word = words[look] || session.state
  return look === "failed" && session.detail ? `failed: ${session.detail}` : word
}
