import type { Fault } from "@warren/base/fault.ts"
import { encodeJson } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import { describe, expect, test, vi } from "vitest"
import { outcome, welcome, withPeer } from "../testing/rpc-client.ts"
import { wire } from "../testing/rpc-system.ts"
import { RpcClient } from "./client.ts"
import { rpcLimits } from "./wire.ts"

describe("RpcClient with a server that stops", () => {
  test("sends nothing before it is welcome, then what waited, in order", () =>
    withPeer(async (client, peer) => {
      const work = [1, 2, 3].map((value) => client.call("echo.say", { value }))
      await eventually(() => peer.messages.length === 1)
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
      expect(peer.messages).toEqual([{ hello: { version: 1, name: "" } }])
      peer.send(welcome)
      await eventually(() => peer.messages.length === 4)
      const ids = peer.messages.slice(1).map((message) => message["id"] as number)
      expect(new Set(ids).size).toBe(3)
      for (const id of ids.toReversed()) peer.send({ id, out: { value: `for ${id}` } })
      expect((await Promise.all(work)).map(({ value }) => value)).toEqual(ids.map((id) => `for ${id}`))
    }))

  test("takes as many waiting requests as the limit, and not one more", () =>
    withPeer(async (client) => {
      const work = Array.from({ length: rpcLimits.queuedMax }, (_, value) =>
        outcome(client.call("echo.say", { value }, { timeoutMs: 0 })),
      )
      expect(client.waiting).toBe(rpcLimits.queuedMax)
      await expect(client.call("echo.say", { value: 0 }, { timeoutMs: 0 })).rejects.toMatchObject({ code: "limit" })
      await expect(client.feed("count.up", { last: 1 }).next()).rejects.toMatchObject({ code: "limit" })
      await client[Symbol.asyncDispose]()
      expect(new Set((await Promise.all(work)).map((thrown) => (thrown as Fault).code))).toEqual(new Set(["cancelled"]))
    }))

  test("a request that is aborted while it waits is never sent", () =>
    withPeer(async (client, peer) => {
      const controller = new AbortController()
      const work = outcome(client.call("echo.say", { value: 1 }, { signal: controller.signal }))
      controller.abort("enough")
      expect(await work).toBe("enough")
      peer.send(welcome)
      const next = client.call("echo.say", { value: 2 })
      await eventually(() => peer.messages.length === 2)
      const [, request] = peer.messages
      expect(request).toMatchObject({ in: { value: 2 } })
      peer.send({ id: request?.["id"] as number, out: { value: 2 } })
      await next
      expect(client.waiting).toBe(0)
    }))

  test("a peer that does not read is not sent more than it has room for", async () => {
    await using pair = await SocketPair.make()
    pair.right.write(encodeJson(welcome))
    pair.right.pause()
    await using client = new RpcClient(pair.left, wire)
    const value = "x".repeat(100_000)
    const work = Array.from({ length: 400 }, () => outcome(client.call("echo.say", { value }, { timeoutMs: 0 })))
    let most = 0
    for (let turn = 0; turn < 200; turn++) {
      most = Math.max(most, pair.left.writableLength)
      await new Promise(setImmediate)
    }
    expect(client.waiting).toBe(400)
    expect(most).toBeLessThan(3 * value.length)
    await client[Symbol.asyncDispose]()
    await Promise.all(work)
  })

  test("a peer that goes away fails what waits", () =>
    withPeer(async (client, peer) => {
      peer.send(welcome)
      const work = outcome(client.call("echo.say", { value: 1 }))
      await eventually(() => peer.messages.length === 2)
      peer.socket.destroy()
      expect(await work).toMatchObject({ code: "unavailable" })
      expect(client.isOpen).toBe(false)
    }))

  test("a peer that never greets is given up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await withPeer(async (client) => {
        const work = outcome(client.call("echo.say", { value: 1 }, { timeoutMs: 0 }))
        vi.advanceTimersByTime(rpcLimits.helloMs)
        expect(await work).toMatchObject({ code: "timeout", message: "the other side did not answer the greeting" })
      })
    } finally {
      vi.useRealTimers()
    }
  })

  test("a peer that refuses the greeting is heard", () =>
    withPeer(async (client, peer) => {
      peer.send({ id: 0, fault: { code: "unavailable", message: "stopping" } })
      await expect(client.call("echo.say", { value: 1 })).rejects.toMatchObject({
        code: "unavailable",
        message: "stopping",
      })
    }))
})
