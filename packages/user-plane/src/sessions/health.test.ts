import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { SessionState } from "@warren/protocol/user-plane/session.ts"
import { decide, quietMs, type Action, type Facts } from "./health.ts"
import { canMove, type Move } from "./moves.ts"

const ms = fc.integer({ min: 0, max: 100_000 })
const facts: fc.Arbitrary<Facts> = fc.record({
  state: fc.constantFrom(...SessionState.options),
  hasDied: fc.boolean(),
  isUnfinished: fc.boolean(),
  isBusy: fc.boolean(),
  inside: fc.constantFrom("unknown", "busy", "quiet"),
  sinceUseMs: ms,
  ageMs: ms,
  awakeMs: fc.oneof(fc.constant(0), ms),
  ttlMs: fc.option(ms, { nil: undefined }),
  lifeMs: fc.option(ms, { nil: undefined }),
  lifeAction: fc.constantFrom(undefined, "stop", "pause", "hibernate"),
  idle: fc.option(fc.record({ afterMs: ms, action: fc.constantFrom("pause", "hibernate", "stop") }), {
    nil: undefined,
  }),
  snapshots: fc.option(fc.record({ everyMs: ms, sinceMs: ms }), { nil: undefined }),
})

/** The move each action makes, where it makes one. */
const move: Readonly<Partial<Record<Action, Move>>> = {
  fail: "fail",
  expire: "stop",
  endLife: "stop",
  pauseLife: "pause",
  restLife: "hibernate",
  pause: "pause",
  hibernate: "hibernate",
  stop: "stop",
}

/** Where its life was to lead. */
const isAtRest = ({ state, lifeAction = "stop" }: Facts): boolean =>
  lifeAction === "pause" ? state !== "running" : lifeAction === "hibernate" && state === "hibernated"

const check = (holds: (given: Facts, action: Action | undefined) => boolean): void =>
  fc.assert(
    fc.property(facts, (given) => holds(given, decide(given))),
    { numRuns: 5_000 },
  )

describe("what is decided about a session", () => {
  test("is always a move it can make", () =>
    check(({ state }, action) => {
      const made = action && move[action]
      return made === undefined || canMove(state, made)
    }))

  test("leaves alone what is on its way somewhere, or over, and finishes what came to a halt", () =>
    check(({ state, isUnfinished }, action) => {
      const rests = state === "running" || state === "paused" || state === "hibernated"
      const hasHalted = isUnfinished && (state === "hibernating" || state === "stopping")
      return rests || action === (hasHalted ? "finish" : undefined)
    }))

  test("never puts to sleep what is busy, kept awake, or not known to be quiet", () =>
    check((given, action) => {
      const isIdleAction = action === "pause" || action === "hibernate" || action === "stop"
      const mayBe = !given.isBusy && given.awakeMs === 0 && (given.state === "paused" || given.inside === "quiet")
      return !isIdleAction || mayBe
    }))

  test("never expires what is in use", () => check((given, action) => action !== "expire" || !given.isBusy))

  test("ends what is past its life, busy or not", () =>
    check((given, action) => {
      const isOld = given.lifeMs !== undefined && given.ageMs >= given.lifeMs && !given.hasDied
      const isThere = given.state === "running" || given.state === "paused" || given.state === "hibernated"
      const wanted = { stop: "endLife", pause: "pauseLife", hibernate: "restLife" }[given.lifeAction ?? "stop"]
      return !(isOld && isThere) || action === wanted || isAtRest(given)
    }))

  test("notices a death before anything else", () =>
    check((given, action) => !(given.hasDied && given.state === "running") || action === "fail"))

  test("does not change by the passing of time alone before it was said to", () =>
    fc.assert(
      fc.property(facts, fc.double({ min: 0, max: 0.999, noNaN: true }), (given, part) => {
        fc.pre(decide(given) === undefined)
        const wait = quietMs(given)
        const by = Number.isFinite(wait) ? Math.floor(wait * part) : 1_000_000
        expect(decide(later(given, by))).toBeUndefined()
      }),
      { numRuns: 5_000 },
    ))
})

function later(given: Facts, by: number): Facts {
  return {
    ...given,
    sinceUseMs: given.isBusy ? given.sinceUseMs : given.sinceUseMs + by,
    ageMs: given.ageMs + by,
    awakeMs: Math.max(0, given.awakeMs - by),
    snapshots: given.snapshots && { ...given.snapshots, sinceMs: given.snapshots.sinceMs + by },
  }
}
