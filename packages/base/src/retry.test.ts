import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { ManualClock } from "./clock.ts"
import { Fault } from "./fault.ts"
import { backoffMs, retry } from "./retry.ts"
import { eventually } from "./testing/eventually.ts"

const waits = { baseMs: 100, capMs: 1_000 }
const unavailable = new Fault("unavailable", "not now")

describe("backoffMs", () => {
  test("is never negative, never over the cap, never over the doubled base, and grows with the draw", () => {
    const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    const milliseconds = fc.integer({ min: 1, max: 1_000_000 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        milliseconds,
        milliseconds,
        unit,
        (attempt, baseMs, capMs, draw) => {
          const most = Math.min(capMs, baseMs * 2 ** (attempt - 1))
          const wait = backoffMs(attempt, { baseMs, capMs }, () => draw)
          expect(wait).toBeGreaterThanOrEqual(0)
          expect(wait).toBeLessThanOrEqual(most)
          expect(wait).toBeCloseTo(draw * most, 5)
        },
      ),
    )
  })
})

describe("retry", () => {
  test("tries again after each wait, then gives the answer", async () => {
    const clock = new ManualClock()
    const tries: { attempt: number; at: number }[] = []
    const work = retry(
      async (attempt) => {
        tries.push({ attempt, at: clock.monotonic() })
        if (attempt < 4) throw unavailable
        return "done"
      },
      { triesMax: 10, ...waits, clock, random: () => 1 },
    )
    await eventually(() => clock.sleeping === 1)
    await clock.advance(700)
    expect(await work).toBe("done")
    expect(tries).toEqual([
      { attempt: 1, at: 0 },
      { attempt: 2, at: 100 },
      { attempt: 3, at: 300 },
      { attempt: 4, at: 700 },
    ])
  })

  test.each([1, 2, 5])("gives up after exactly %i tries, with the last failure as it is", async (triesMax) => {
    const failures: Fault[] = []
    const work = retry(
      async (attempt) => {
        const failure = new Fault("unavailable", String(attempt))
        failures.push(failure)
        throw failure
      },
      { triesMax, ...waits, random: () => 0 },
    )
    const thrown: unknown = await work.catch((failure: unknown) => failure)
    expect(failures.length).toBe(triesMax)
    expect(thrown).toBe(failures.at(-1))
  })

  test.each([new Fault("invalid", "never"), new Error("a bug"), new Fault("cancelled", "stop")])(
    "does not try again what would fail again: %s",
    async (failure) => {
      let tries = 0
      const work = retry(() => (tries++, Promise.reject(failure)), { triesMax: 5, ...waits })
      await expect(work).rejects.toBe(failure)
      expect(tries).toBe(1)
    },
  )

  test("asks the caller what is worth trying again", async () => {
    const work = retry(async (attempt) => (attempt < 3 ? Promise.reject(new Error("x")) : attempt), {
      triesMax: 5,
      ...waits,
      isRetryable: () => true,
      random: () => 0,
    })
    expect(await work).toBe(3)
  })

  test("aborted while it waits, it rejects with the reason and does not try again", async () => {
    const clock = new ManualClock()
    const controller = new AbortController()
    let tries = 0
    const options = { triesMax: 5, ...waits, clock, random: () => 1, signal: controller.signal }
    const work = retry(() => (tries++, Promise.reject(unavailable)), options)
    await eventually(() => clock.sleeping === 1)
    controller.abort("enough")
    await expect(work).rejects.toBe("enough")
    expect([tries, clock.sleeping]).toEqual([1, 0])
    await expect(retry(() => Promise.resolve(tries++), options)).rejects.toBe("enough")
    expect(tries).toBe(1)
  })
})
