import { silentLog } from "@warren/base/log.ts"
import { expect, test } from "vitest"
import { Watch } from "./watch.ts"

const still = (): Promise<boolean> => Promise.resolve(true)

test("while it stops, who follows is sent away, also who comes back meanwhile; what has an end of its own is not", () => {
  using watch = new Watch(still, silentLog)
  const [feed, stream] = [watch.openAs("feed", "a", still), watch.openAs("stream", "a", still)]
  watch.endFeeds()
  // A connection that was kept open for another request may bring one.
  const [again, more] = [watch.openAs("feed", "a", still), watch.openAs("stream", "a", still)]
  expect([feed, again].map(({ signal }) => (signal.reason as { code?: string }).code)).toEqual(
    Array(2).fill("unavailable"),
  )
  expect([stream, more].map(({ signal }) => signal.aborted)).toEqual([false, false])
})
