import { expect, it } from "vitest"
import { OomWatch } from "./oom.ts"

const killed = { code: null, signal: "SIGKILL", reason: "signal" } as const
const ofShell = { code: 137, signal: null, reason: "exit" } as const

it("calls oom what was killed while the kernel killed for want of memory, and nothing else", () => {
  let oomKills = 3
  const watch = new OomWatch({ oomKills: () => oomKills })
  expect(watch.reason(killed)).toBe("signal")
  expect(watch.reason(ofShell)).toBe("exit")
  oomKills = 4
  expect(watch.reason(killed)).toBe("oom")
  expect(watch.reason(ofShell)).toBe("oom")
  expect(watch.reason({ code: 1, signal: null, reason: "exit" })).toBe("exit")
  expect(watch.reason({ code: null, signal: "SIGTERM", reason: "signal" })).toBe("signal")
  expect(watch.reason({ code: null, signal: "SIGKILL", reason: "timeout" })).toBe("timeout")
})
