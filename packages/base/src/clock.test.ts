import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { ManualClock, systemClock } from "./clock.ts"

describe("ManualClock", () => {
  test("wakes sleepers in the order of their times, at their times", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(1_000), { maxLength: 12 }), fc.nat(1_000), async (waits, end) => {
        const clock = new ManualClock(5_000)
        const woken: { wait: number; at: number; wall: number }[] = []
        for (const wait of waits) {
          void clock.sleep(wait).then(() => woken.push({ wait, at: clock.monotonic(), wall: clock.now() }))
        }
        await clock.advance(end)
        const due = waits.filter((wait) => wait <= end).toSorted((a, b) => a - b)
        expect(woken).toEqual(due.map((wait) => ({ wait, at: wait, wall: 5_000 + wait })))
        expect(clock.sleeping).toBe(waits.length - due.length)
        expect([clock.monotonic(), clock.now()]).toEqual([end, 5_000 + end])
      }),
      { numRuns: 50 },
    )
  })

  test("runs who wakes, sleeps and wakes again within one advance", async () => {
    const clock = new ManualClock()
    const ticks: number[] = []
    const work = (async () => {
      for (let i = 0; i < 4; i++) {
        await clock.sleep(10)
        ticks.push(clock.monotonic())
      }
    })()
    await clock.advance(35)
    expect(ticks).toEqual([10, 20, 30])
    await clock.advance(5)
    await work
  })

  test("a sleeper that is aborted rejects with the reason and is forgotten", async () => {
    const clock = new ManualClock()
    const controller = new AbortController()
    const sleep = clock.sleep(10, controller.signal)
    expect(clock.sleeping).toBe(1)
    controller.abort("enough")
    await expect(sleep).rejects.toBe("enough")
    expect(clock.sleeping).toBe(0)
    await expect(clock.sleep(10, controller.signal)).rejects.toBe("enough")
  })

  test("the wall jumps alone", () => {
    const clock = new ManualClock(1_000)
    clock.jump(-500)
    expect([clock.now(), clock.monotonic()]).toEqual([500, 0])
  })
})

describe("systemClock", () => {
  test("sleeps, and rejects with the signal's own reason", async () => {
    await systemClock.sleep(0)
    const reason = new Error("mine")
    await expect(systemClock.sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason)
    const controller = new AbortController()
    const sleep = systemClock.sleep(60_000, controller.signal)
    controller.abort(reason)
    await expect(sleep).rejects.toBe(reason)
    const before = systemClock.monotonic()
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
    expect(Number.isInteger(systemClock.now())).toBe(true)
  })

  test("waits also longer than a timer of the platform can", async () => {
    const controller = new AbortController()
    const sleep = systemClock.sleep(2 ** 31, controller.signal)
    const first = await Promise.race([sleep.then(() => "the long one"), systemClock.sleep(20).then(() => "the short")])
    expect(first).toBe("the short")
    controller.abort(new Error("mine"))
    await expect(sleep).rejects.toThrow("mine")
  })
})
