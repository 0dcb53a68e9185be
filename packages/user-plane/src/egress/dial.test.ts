import { describe, expect, test } from "vitest"
import { dial } from "./dial.ts"
import { Loopback } from "./testing/egress-system.ts"

describe("a connection to the outside", () => {
  test("is not begun for somebody who has gone", async () => {
    await using site = await Loopback.http((_, response) => void response.end())
    const reason = new Error("gone")
    await expect(dial("127.0.0.1", site.port, 5_000, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(site.open).toBe(0)
  })

  test("is given up with whoever waits for it", async () => {
    const leaving = new AbortController()
    // Reserved for documentation: nobody is there to say no.
    const dialled = dial("192.0.2.1", 9, 60_000, leaving.signal)
    const reason = new Error("gone")
    leaving.abort(reason)
    await expect(dialled).rejects.toBe(reason)
  })
})
