import { ManualClock } from "@warren/base/clock.ts"
import { expect, test } from "vitest"
import type { Grant } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"
import { OneTime } from "./one-time.ts"

const grant: Grant = { user: "alice", session: "ses_00000000000000000000", target: "3000", via: "sin_1" }
const host = "3000-00000000000000000000.warren.localhost"

test("a ticket lets in once, says what it goes back to, and is nothing a second time", () => {
  const oneTime = new OneTime(new ManualClock())
  const value = oneTime.ticket(grant, host)
  expect(value).toMatch(/^tkt_[\w-]{43}\.sin_1$/)
  expect(oneTime.ticket(grant, host)).not.toBe(value)
  expect([oneTime.redeem(value, host), oneTime.redeem(value, host)]).toEqual([grant, undefined])
  expect(oneTime.redeem("tkt_nobody-made-this", host)).toBeUndefined()
})

test("a ticket at another host lets nobody in, and is used by having been shown there", () => {
  const oneTime = new OneTime(new ManualClock())
  const value = oneTime.ticket(grant, host)
  expect([oneTime.redeem(value, `x${host}`), oneTime.redeem(value, host)]).toEqual([undefined, undefined])
})

test("a ticket is good for a minute", async () => {
  const clock = new ManualClock()
  const oneTime = new OneTime(clock)
  const [early, late] = [oneTime.ticket(grant, host), oneTime.ticket(grant, host)]
  await clock.advance(gatewayLimits.ticketMs - 1)
  expect(oneTime.redeem(early, host)).toEqual(grant)
  await clock.advance(1)
  expect(oneTime.redeem(late, host)).toBeUndefined()
})

test("so many tickets and no more: the oldest goes, the others stay", () => {
  const oneTime = new OneTime(new ManualClock())
  const all = Array.from({ length: gatewayLimits.ticketsMax + 1 }, () => oneTime.ticket(grant, host))
  expect(all.filter((value) => oneTime.redeem(value, host) === undefined)).toEqual([all[0]])
})

test("a token is burned once, and for as long as it would have been good", async () => {
  const clock = new ManualClock()
  const oneTime = new OneTime(clock)
  expect([oneTime.isBurned("a"), oneTime.burn("a", 100), oneTime.burn("a", 100), oneTime.isBurned("b")]).toEqual([
    ...[false, true, false, false],
  ])
  await clock.advance(99)
  expect(oneTime.isBurned("a")).toBe(true)
  await clock.advance(1)
  expect(oneTime.isBurned("a")).toBe(false)
})

test("so many tokens are remembered and no more: the oldest goes, the others stay", () => {
  const oneTime = new OneTime(new ManualClock())
  const all = Array.from({ length: gatewayLimits.burnedMax + 1 }, (_, i) => `token ${i}`)
  for (const token of all) oneTime.burn(token, 1_000)
  expect(all.filter((token) => !oneTime.isBurned(token))).toEqual([all[0]])
})
