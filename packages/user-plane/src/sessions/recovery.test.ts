import { describe, expect, test } from "vitest"
import { SessionState } from "@warren/protocol/user-plane/session.ts"
import { recover } from "./recovery.ts"

describe("what a new runner does with what it finds", () => {
  test("leaves nothing on its way somewhere", () => {
    for (const state of ["starting", "hibernating", "restoring", "stopping"] as const) {
      for (const isRunning of [true, false]) expect(recover(state, isRunning), state).not.toBe("keep")
    }
  })

  test("keeps what runs running, and what sleeps asleep", () => {
    expect(recover("running", true)).toBe("keep")
    expect(recover("paused", true)).toBe("pauseAgain")
    expect(recover("hibernated", false)).toBe("keep")
    expect(recover("stopped", false)).toBe("keep")
  })

  test("forgets only what nobody was told of", () => {
    const forgotten = SessionState.options.filter((state) => recover(state, true) === "forget")
    expect(forgotten).toEqual(["starting"])
  })

  test("ends a sandbox whose session does not run", () => {
    for (const state of ["hibernated", "stopped", "failed"] as const) expect(recover(state, true)).toBe("endSandbox")
  })
})
