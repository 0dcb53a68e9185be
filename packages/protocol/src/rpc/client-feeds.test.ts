import { Fault } from "@warren/base/fault.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { outcome } from "../testing/rpc-client.ts"
import { System } from "../testing/rpc-system.ts"
import { rpcLimits } from "./wire.ts"

describe("RpcClient with a server", () => {
  test("many feeds of large items at once reach a client that reads", async () => {
    await using system = await System.start()
    const fill = "x".repeat(700_000)
    const read = async (): Promise<number> => {
      let seen = 0
      for await (const { item } of system.client.feed("count.up", { last: 3, fill })) seen += item.fill.length
      return seen
    }
    const seen = await Promise.all(Array.from({ length: 30 }, read))
    expect(new Set(seen)).toEqual(new Set([3 * fill.length]))
    await system.quiet()
  })

  test("a feed ends, and leaving it early stops it at the other end", async () => {
    await using system = await System.start()
    const seen: number[] = []
    for await (const { seq } of system.client.feed("count.up", { after: 7, last: 10 })) seen.push(seq)
    expect(seen).toEqual([8, 9, 10])
    for await (const { seq } of system.client.feed("count.up", { last: 1_000_000 })) if (seq === 5) break
    await system.quiet()
    expect(system.answers.events).toEqual(["feed over", "feed over"])
    expect(system.answers.produced).toBeLessThan(100_000)
  })

  test("a feed that is aborted rejects with the caller's reason, and is stopped at the other end", async () => {
    await using system = await System.start()
    const controller = new AbortController()
    const feed = system.client.feed("count.up", { last: 5, thenWaits: true }, { signal: controller.signal })
    await feed.next()
    expect(system.answers.events).toEqual([])
    controller.abort("enough")
    const drain = async (): Promise<void> => {
      for await (const _ of feed) continue
    }
    expect(await outcome(drain())).toBe("enough")
    await system.quiet()
    expect(system.answers.events).toEqual(["feed over"])
  })

  test("a reader that is too slow gets what was kept, then `resync` that says where to go on", async () => {
    await using system = await System.start()
    const feed = system.client.feed("count.up", { last: 1_000_000_000 })
    const first = await feed.next()
    let last = first.value?.seq ?? 0
    await eventually(() => system.answers.events.includes("feed over"))
    const drain = async (): Promise<void> => {
      for await (const { seq } of feed) expect(seq).toBe(++last)
    }
    const fault = (await outcome(drain())) as Fault
    expect(fault).toMatchObject({ code: "resync", hint: `read again after ${last}` })
    expect(last).toBeLessThanOrEqual(3 * rpcLimits.feedItemsMax)
    await system.quiet()
    const again = await system.client.feed("count.up", { after: last, last: last + 1 }).next()
    expect(again.value?.seq).toBe(last + 1)
  })

  test("an item of the wrong shape is a typed fault of that feed only", async () => {
    await using system = await System.start()
    const thrown = await outcome(system.client.feed("count.badly", {}).next())
    expect(thrown).toBeInstanceOf(Fault)
    expect((await system.client.call("echo.say", { value: 1 })).value).toBe(1)
  })
})
