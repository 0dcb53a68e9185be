import { Fault } from "@warren/base/fault.ts"
import { frameLimits } from "@warren/base/frame.ts"
import { describe, expect, test } from "vitest"
import { outcome } from "../testing/rpc-client.ts"
import { System } from "../testing/rpc-system.ts"

describe("RpcClient with a server", () => {
  test("faults arrive as they were thrown, without their causes; bugs arrive as nothing but `internal`", async () => {
    await using system = await System.start()
    const fault = (await outcome(system.client.call("fault.throw", { kind: "fault" }))) as Fault
    expect(fault).toBeInstanceOf(Fault)
    expect([fault.toData(), fault.cause]).toEqual([
      { code: "conflict", message: "no", hint: "try later", subject: "thing:1" },
      undefined,
    ])
    for (const kind of ["bug", "text", "shape"] as const) {
      const bug = (await outcome(system.client.call("fault.throw", { kind }))) as Fault
      expect(bug.code).toBe("internal")
      expect(JSON.stringify(bug.toData())).not.toContain("hunter2")
    }
    expect(system.logged.map((line) => [line["event"], line["call"]])).toEqual(
      Array.from({ length: 3 }, () => ["rpc.bug", "fault.throw"]),
    )
    expect(system.logged[0]).toMatchObject({ message: "password=hunter2", stack: expect.stringContaining("TypeError") })
  })

  test.each(["long", "huge"] as const)(
    "a fault with a %s message arrives, cut, and the connection goes on",
    async (kind) => {
      await using system = await System.start()
      const other = system.client.call("echo.say", { value: "other", turns: 50 })
      await expect(system.client.call("fault.throw", { kind })).rejects.toMatchObject({ code: "conflict" })
      expect((await other).value).toBe("other")
    },
  )

  test("an answer or an item over the limit is a fault of that request only", async () => {
    await using system = await System.start()
    const overhead = JSON.stringify({ id: 1, out: { text: "" } }).length
    const most = frameLimits.jsonBytesMax - overhead
    expect((await system.client.call("text.make", { chars: most })).text.length).toBe(most)
    await expect(system.client.call("text.make", { chars: most + 1 })).rejects.toMatchObject({ code: "limit" })
    const feed = system.client.feed("count.up", { last: 1, fill: "x".repeat(1024), times: 1024 })
    await expect(feed.next()).rejects.toMatchObject({ code: "limit" })
    expect((await system.client.call("echo.say", { value: 1 })).value).toBe(1)
    await system.quiet()
  })

  test("a request over the limit, or one that is not JSON, is refused here, and the connection goes on", async () => {
    await using system = await System.start()
    const value = "x".repeat(frameLimits.jsonBytesMax)
    await expect(system.client.call("echo.say", { value })).rejects.toMatchObject({ code: "limit" })
    await expect(system.client.call("echo.say", { value: 1n })).rejects.toThrow(TypeError)
    expect((await system.client.call("echo.say", { value: "é\u2028\ud83d\ude00" })).value).toBe("é\u2028\ud83d\ude00")
    expect(system.client.waiting).toBe(0)
  })

  test("bad input is refused by the server with the field's name", async () => {
    await using system = await System.start()
    const work = system.client.call("echo.say", { value: 1, turns: -1 })
    await expect(work).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("turns"),
      subject: "call:echo.say",
    })
  })
})
