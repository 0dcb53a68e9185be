import { describe, expect, it } from "vitest"
import { Fixture, text } from "./testing/fixture.ts"
import { footprint, lasting } from "./testing/invariants.ts"

const rounds = Number(process.env["WARREN_CHURN"] ?? 500)
const atOnce = 8

describe("churn", () => {
  const fixture = new Fixture()

  it(`leaves nothing after ${rounds} sandboxes, ${atOnce} at a time`, { timeout: 600_000 }, async () => {
    const before = footprint(fixture.root)
    const started = performance.now()
    let next = 0
    const work = async (): Promise<void> => {
      while (next < rounds) {
        const round = next++
        const sandbox = await fixture.start()
        expect(await text(sandbox, `echo ${round} > /workspace/n; cat /workspace/n`)).toBe(`${round}\n`)
        await fixture.destroy(sandbox.id)
        await sandbox.ended
      }
    }
    const results = await Promise.allSettled(Array.from({ length: atOnce }, work))
    const seconds = (performance.now() - started) / 1_000
    expect(results.filter((result) => result.status === "rejected")).toEqual([])
    expect(await lasting(before, fixture.root)).toEqual([])
    console.log(`churn: ${rounds} sandboxes in ${seconds.toFixed(1)} s, ${(rounds / seconds).toFixed(0)} per second`)
  })
})
