import { userPlane } from "@warren/protocol/user-plane.ts"

/** The smallest real call there is, and an answer as a runner gives it. */
export const healthContract = { "health.check": userPlane["health.check"] }

const startedAt = new Date().toISOString()

export const healthOf = (pid: number) => ({
  status: "ok" as const,
  user: "warren",
  version: "0.1.0",
  build: "0123456789ab",
  pid,
  startedAt,
  driver: "oci",
  tools: { shell: true, browser: true },
  sessions: { running: 3, all: 5 },
  found: { adopted: 0, asleep: 0, lost: 0, forgotten: 0, waiting: 0, removed: 0 },
  degraded: [],
})
