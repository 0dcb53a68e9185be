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
  degraded: [],
})
