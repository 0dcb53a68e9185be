import { ManualClock } from "@warren/base/clock.ts"
import { describe, expect, test } from "vitest"
import type { Lease, LeaseId } from "./lease.ts"
import { Runs } from "./runs.ts"

const lifeMs = 60_000

/** Of a lease, what a run looks at. */
function lease(id: string, clock: ManualClock): Lease {
  return { id: id as LeaseId, expiresAt: clock.now() + lifeMs } as Lease
}

function begun() {
  const clock = new ManualClock()
  const runs = new Runs(clock, (cut) => new Error(cut))
  const run = (id: string) => runs.begin(lease(id, clock))
  return { clock, runs, run }
}

describe("what runs on a lease", () => {
  test("is cut with it, all of it, and nothing that runs on another", () => {
    const { runs, run } = begun()
    const [one, again, other] = [run("a"), run("a"), run("b")]
    runs.revoke("a" as LeaseId)
    expect([one, again, other].map(({ cut }) => cut)).toEqual(["revoked", "revoked", undefined])
    expect(one.signal.reason).toEqual(new Error("revoked"))
    expect(other.signal.aborted).toBe(false)
    other[Symbol.dispose]()
  })

  test("is cut once, for the first reason", async () => {
    const { clock, runs, run } = begun()
    const one = run("a")
    await clock.advance(lifeMs)
    expect(one.cut).toBe("expired")
    runs.revoke("a" as LeaseId)
    expect([one.cut, one.signal.reason]).toEqual(["expired", new Error("expired")])
  })

  test("and is over is cut by nothing, and nobody waits for the end of its lease", async () => {
    const { clock, runs, run } = begun()
    const one = run("a")
    one[Symbol.dispose]()
    runs.revoke("a" as LeaseId)
    runs.close()
    await clock.advance(lifeMs)
    await new Promise(setImmediate)
    expect([one.cut, one.signal.aborted, clock.sleeping]).toEqual([undefined, false, 0])
  })

  test("ends with everything else when nobody is left to answer", () => {
    const { runs, run } = begun()
    const all = [run("a"), run("b")]
    runs.close()
    expect(all.map(({ signal }) => signal.aborted)).toEqual([true, true])
  })
})
