import fc from "fast-check"
import { expect, test } from "vitest"
import { shareOf, userLimits } from "./user-limits.ts"

test("no one of an ordinary user's sandboxes takes what the others need, nor more than root's may", () => {
  const limit = fc.integer({ min: 4, max: 2 ** 31 })
  fc.assert(
    fc.property(limit, limit, (max_inotify_instances, max_inotify_watches) => {
      const host = { max_inotify_instances, max_inotify_watches }
      const share = shareOf(userLimits, host)
      for (const name of ["max_inotify_instances", "max_inotify_watches"] as const) {
        expect(4 * share[name]).toBeLessThanOrEqual(host[name])
        expect(share[name]).toBeLessThanOrEqual(userLimits[name])
        expect(share[name]).toBeGreaterThan(0)
      }
      expect(share.max_user_namespaces).toBe(0)
    }),
  )
})
