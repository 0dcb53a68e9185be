import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test, vi } from "vitest"
import { outcome } from "../testing/rpc-client.ts"
import { System } from "../testing/rpc-system.ts"
import { rpcLimits } from "./wire.ts"

describe("RpcClient with a server", () => {
  test("a call that is aborted rejects with the caller's reason, after the work has stopped", async () => {
    await using system = await System.start()
    const { answers, client } = system
    let letGo = (): void => undefined
    answers.stopping = new Promise((resolve) => (letGo = resolve))
    const controller = new AbortController()
    const reason = new Error("mine")
    const work = outcome(client.call("work.wait", {}, { signal: controller.signal, timeoutMs: 0 })).then((result) => {
      answers.events.push("rejected")
      return result
    })
    await eventually(() => answers.events.includes("started"))
    controller.abort(reason)
    // Another call passes in between: the client knows that the first has not stopped yet, not only that it has not heard.
    await client.call("echo.say", { value: 1, turns: 20 })
    expect(answers.events).toEqual(["started"])
    letGo()
    expect(await work).toBe(reason)
    expect(answers.events).toEqual(["started", "stopped", "rejected"])
    await system.quiet()
  })

  test("a call that was aborted before it began is not sent", async () => {
    await using system = await System.start()
    const work = system.client.call("work.wait", {}, { signal: AbortSignal.abort("early") })
    await expect(work).rejects.toBe("early")
    expect(system.client.waiting).toBe(0)
    await system.client.call("echo.say", { value: 1 })
    expect(system.answers.events).toEqual([])
  })

  test("a call that takes too long is a timeout, by its own limit or the caller's, and the work is stopped", async () => {
    await using system = await System.start()
    await expect(system.client.call("work.wait", {})).rejects.toMatchObject({
      code: "timeout",
      message: "work.wait took longer than 40 ms",
    })
    await expect(system.client.call("work.wait", {}, { timeoutMs: 1 })).rejects.toMatchObject({ code: "timeout" })
    expect(system.answers.events).toEqual(["started", "stopped", "started", "stopped"])
    await system.quiet()
  })

  test("a call that is both late and aborted leaves no timer", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await using system = await System.start()
      const { answers, client } = system
      await client.call("echo.say", { value: 1 })
      let letGo = (): void => undefined
      answers.stopping = new Promise((resolve) => (letGo = resolve))
      const controller = new AbortController()
      const work = outcome(client.call("work.wait", {}, { signal: controller.signal }))
      await eventually(() => answers.events.includes("started"))
      vi.advanceTimersByTime(40)
      controller.abort("also")
      letGo()
      expect(await work).toMatchObject({ code: "timeout" })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test("work that does not stop is given up after a while, and its answer is ignored when it comes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await using system = await System.start()
      const { answers, client } = system
      let letGo = (): void => undefined
      answers.stopping = new Promise((resolve) => (letGo = resolve))
      const controller = new AbortController()
      const work = outcome(client.call("work.wait", {}, { signal: controller.signal, timeoutMs: 0 }))
      await eventually(() => answers.events.includes("started"))
      controller.abort("enough")
      vi.advanceTimersByTime(rpcLimits.cancelMs)
      expect(await work).toBe("enough")
      expect(client.waiting).toBe(1)
      letGo()
      await system.quiet()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})
