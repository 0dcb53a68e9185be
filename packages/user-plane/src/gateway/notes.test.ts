import { ManualClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { createLog } from "@warren/base/log.ts"
import { expect, test } from "vitest"
import { gatewayLimits } from "./limits.ts"
import { Notes, type GatewayNote } from "./notes.ts"
import { GatewayRefusal } from "./refusal.ts"

const grant = { user: "alice", session: "ses_1", target: "3000" }

test("a program that brings a token with each request is noted once in a while", async () => {
  const clock = new ManualClock()
  const noted: GatewayNote[] = []
  const access = { add: (note: GatewayNote) => void noted.push(note), refuse: () => undefined }
  const notes = new Notes({ clock, access, log: createLog(() => undefined) })
  for (let i = 0; i < 5; i++) notes.opened(grant)
  notes.opened({ ...grant, target: "web" })
  expect(noted).toHaveLength(2)
  await clock.advance(gatewayLimits.noteAgainMs)
  notes.opened(grant)
  expect(noted).toHaveLength(3)
})

test("what cannot be written down is refused all the same, and nobody is let in unnoted", () => {
  const lines: string[] = []
  const full = (): never => {
    throw new Error("no space left on device")
  }
  const log = createLog((line) => void lines.push(line))
  const notes = new Notes({ clock: new ManualClock(), access: { add: full, refuse: full }, log })
  expect(notes.failed(new GatewayRefusal(401, "no"), undefined)).toMatchObject({
    fault: { status: 401 },
    isRefused: true,
  })
  expect(lines[0]).toContain("access.lost")
  expect(() => notes.opened(grant)).toThrow("no space")
  // Its words may hold anything: they are for the log.
  expect(notes.failed(new Error("secret"), grant)).toEqual({ fault: expect.any(Fault), isRefused: false })
  expect(notes.failed(new Error("secret"), grant).fault.message).not.toContain("secret")
})
