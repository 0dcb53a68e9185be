import { getEventListeners } from "node:events"
import { expect, test } from "vitest"
import { JoinedSignal } from "./joined-signal.ts"

test("aborts once, with the reason of whoever was first", () => {
  const [one, other] = [new AbortController(), new AbortController()]
  using both = new JoinedSignal(one.signal, other.signal)
  const reasons: unknown[] = []
  both.signal.addEventListener("abort", () => reasons.push(both.signal.reason))
  expect(both.signal.aborted).toBe(false)
  other.abort("other")
  one.abort("one")
  expect(reasons).toEqual(["other"])
})

test("one that was aborted before is heard", () => {
  using both = new JoinedSignal(new AbortController().signal, AbortSignal.abort("early"))
  expect(both.signal.reason).toBe("early")
})

test("what is over leaves nothing with a source that goes on, and hears nothing more of it", () => {
  const source = new AbortController()
  const own = Object.getOwnPropertySymbols(source.signal).length
  const gone = Array.from({ length: 1_000 }, () => {
    using both = new JoinedSignal(source.signal, new AbortController().signal)
    return both.signal
  })
  expect(getEventListeners(source.signal, "abort")).toEqual([])
  expect(Object.getOwnPropertySymbols(source.signal).length).toBe(own)
  source.abort("late")
  expect(gone.some(({ aborted }) => aborted)).toBe(false)
})
