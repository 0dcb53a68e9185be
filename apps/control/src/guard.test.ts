import { expect, test } from "vitest"
import { TestControl } from "./testing/test-control.ts"

test.each([["evil.example"], ["localhost:1"], ["localhost:7777.evil.example"], ["127.0.0.1"], [""]])(
  "a host that is not ours is not served: %s",
  async (host) => {
    await using system = await TestControl.open()
    expect((await system.ask("/health", { headers: { host } })).status).toBe(403)
  },
)
