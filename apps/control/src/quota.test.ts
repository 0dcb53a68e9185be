import { ManualClock } from "@warren/base/clock.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Buckets } from "./buckets.ts"
import { sessionId } from "./testing/test-runner.ts"
import { TestControl } from "./testing/test-control.ts"

describe("requests per minute", () => {
  test("of a token: then 429 and when to come back; another token is not held up", async () => {
    await using system = await TestControl.open()
    const slow = await system.token(["sessions:read"], { limits: { requestsPerMinute: 60 } })
    const other = await system.token(["sessions:read"])
    const path = `/v1/sessions/${sessionId}`
    for (let n = 0; n < 10; n++) expect((await system.ask(path, { token: slow })).status).toBe(200)
    const refused = await system.ask(path, { token: slow })
    expect([refused.status, refused.headers.get("retry-after"), refused.body.error.code]).toEqual([429, "1", "limit"])
    expect((await system.ask(path, { token: other })).status).toBe(200)
    await system.clock.advance(1_000)
    expect((await system.ask(path, { token: slow })).status).toBe(200)
    expect((await system.ask(path, { token: slow })).status).toBe(429)
  })

  test("of a user: all their tokens together", async () => {
    await using system = await TestControl.open()
    const owner = await system.ownerToken()
    const bob = await system.person("bob")
    await system.ask("/v1/users/bob/quota", { method: "PUT", token: owner, body: { requestsPerMinute: 60 } })
    expect((await system.ask("/v1/users/bob/quota", { token: owner })).body).toEqual({
      sessionsMax: 2_000,
      requestsPerMinute: 60,
    })
    const made = (await system.ask("/v1/tokens", { cookie: bob.cookie, body: {} })).body
    let allowed = 0
    while ((await system.ask("/v1/account", { token: made.token })).status === 200) allowed++
    expect(allowed).toBe(9)
    expect((await system.ask("/v1/account", { cookie: bob.cookie })).status).toBe(429)
    expect((await system.ask("/v1/account", { token: owner })).status).toBe(200)
  })

  test("never more than a burst and the rate allow, whatever the times between", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200 }), async (waits) => {
        const clock = new ManualClock()
        const buckets = new Buckets(clock)
        let taken = 0
        for (const ms of waits) {
          await clock.advance(ms)
          if (buckets.take("x", 60, 5) === 0) taken++
          else expect(buckets.take("x", 60, 5)).toBeGreaterThan(0)
        }
        expect(taken).toBeLessThanOrEqual(5 + clock.monotonic() / 1_000 + 1e-6)
      }),
      { numRuns: 50 },
    )
  })
})
