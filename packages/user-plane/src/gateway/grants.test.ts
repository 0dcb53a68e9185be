import { ManualClock } from "@warren/base/clock.ts"
import { expect, test } from "vitest"
import { Grants, type Grant } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"

const { cookieIdleMs, cookieAgainMs, cookieLifeMs, cookiesMax } = gatewayLimits
const grant: Grant = { user: "alice", session: "ses_00000000000000000000", target: "3000" }

test("a cookie is for one preview of one session, and says what it goes back to", () => {
  const grants = new Grants(new ManualClock())
  const value = grants.issue(grant)
  expect(value).toMatch(/^[\w-]{43}$/)
  expect(grants.issue({ ...grant, via: "tok_1" })).toMatch(/^[\w-]{43}\.tok_1$/)
  expect(grants.find([value], grant)).toEqual({ grant })
  expect(grants.find([value], { ...grant, session: "ses_11111111111111111111" })).toBeUndefined()
  expect(grants.find([value], { ...grant, target: "3001" })).toBeUndefined()
  // Asked for at another preview, it is still good at its own.
  expect(grants.find([value], grant)).toEqual({ grant })
})

test("a made-up one beside it is worth nothing, and does no harm", () => {
  const grants = new Grants(new ManualClock())
  const [other, value] = [grants.issue({ ...grant, target: "other" }), grants.issue(grant)]
  expect(grants.find(["", "made-up", other, value], grant)).toEqual({ grant })
  expect([grants.find(["", "made-up", other], grant), grants.find([], grant)]).toEqual([undefined, undefined])
})

test("unused for a while, it is over; used, it goes on, and the browser is told so now and then", async () => {
  const clock = new ManualClock()
  const grants = new Grants(clock)
  const value = grants.issue(grant)
  await clock.advance(cookieAgainMs - 1)
  expect(grants.find([value], grant)).toEqual({ grant })
  await clock.advance(1)
  expect(grants.find([value], grant)).toEqual({ grant, again: value })
  expect(grants.find([value], grant)).toEqual({ grant })
  await clock.advance(cookieIdleMs - 1)
  expect(grants.find([value], grant)).toEqual({ grant, again: value })
  await clock.advance(cookieIdleMs)
  expect([grants.find([value], grant), grants.find([value], grant)]).toEqual([undefined, undefined])
})

test("however much it is used, it ends", async () => {
  const clock = new ManualClock()
  const grants = new Grants(clock)
  const value = grants.issue(grant)
  const step = cookieIdleMs / 2
  for (let at = step; at < cookieLifeMs; at += step) {
    await clock.advance(step)
    expect(grants.find([value], grant)).toBeDefined()
  }
  await clock.advance(step)
  expect(grants.find([value], grant)).toBeUndefined()
})

test("so many and no more: what goes is what nobody used", () => {
  const grants = new Grants(new ManualClock())
  const [first, second, third] = [grants.issue(grant), grants.issue(grant), grants.issue(grant)]
  grants.find([first], grant)
  for (let i = 3; i < cookiesMax; i++) grants.issue(grant)
  expect(grants.find([first], grant)).toEqual({ grant })
  grants.issue(grant)
  expect([first, second, third].map((value) => grants.find([value], grant) !== undefined)).toEqual([true, false, true])
})
