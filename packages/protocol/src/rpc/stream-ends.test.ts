import { once } from "node:events"
import { Fault } from "@warren/base/fault.ts"
import { encodeStream, frameLimits, streamTags } from "@warren/base/frame.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { SocketPair } from "@warren/base/testing/socket-pair.ts"
import { afterEach, describe, expect, test, vi } from "vitest"
import { piped, servedRaw, thrownBy, type Mode, type Pipe } from "../testing/piped.ts"
import { Served, wire } from "../testing/rpc-system.ts"
import { openStream } from "./stream.ts"
import { rpcLimits } from "./wire.ts"

afterEach(() => {
  vi.useRealTimers()
})

describe("a stream ends", () => {
  const modes: Mode[] = ["echo", "flood", "rush", "deaf", "stubborn"]

  test.each(modes)("when its signal aborts: with its reason, and so does the handler (%s)", async (mode) => {
    const controller = new AbortController()
    await piped(
      mode,
      async (pipe, served) => {
        const reading = thrownBy(drain(pipe))
        await eventually(() => served.answers.events.includes("opened"))
        controller.abort("enough")
        expect(await reading).toBe("enough")
        await eventually(() => served.connection.inFlight === 0)
        expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
        expect(await thrownBy(pipe.next())).toBe("enough")
      },
      controller.signal,
    )
  })

  test.each(modes)("when it is disposed, twice too (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      await pipe[Symbol.asyncDispose]()
      await pipe[Symbol.asyncDispose]()
      expect(await reading).toMatchObject({ code: "unavailable" })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test.each(modes)("when the caller's end of the connection is lost (%s)", (mode) =>
    piped(mode, async (_, served) => {
      served.peer.destroy()
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test.each(modes)("when the server's end of the connection is lost (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      served.socket.destroy()
      expect(await reading).toMatchObject({ code: "unavailable" })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
    }),
  )

  test("when a caller that is held back goes away, although nothing is read from it", () =>
    servedRaw(async (peer, served) => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
      peer.send({ id: 1, open: "pipe.open", in: { mode: "deaf" } })
      await peer.answer(1)
      for (let n = 0; n < 20; n++) peer.socket.write(encodeStream(streamTags.stdin, Buffer.alloc(128 * 1024)))
      await eventually(() => served.socket.isPaused())
      vi.advanceTimersByTime(rpcLimits.heldMs)
      await eventually(() => peer.messages.some((message) => message["held"] === true))
      peer.socket.destroy()
      await once(peer.socket, "close")
      expect(served.connection.inFlight).toBe(1)
      vi.advanceTimersByTime(rpcLimits.heldMs)
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(vi.getTimerCount()).toBe(0)
    }))

  test.each(modes)("when the server closes, which waits for it (%s)", (mode) =>
    piped(mode, async (pipe, served) => {
      const reading = thrownBy(drain(pipe))
      await served.connection[Symbol.asyncDispose]()
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(served.connection.inFlight).toBe(0)
      // Nobody has cancelled it: whoever reads may come back.
      expect(await reading).toMatchObject({ code: "unavailable" })
    }),
  )

  test("when the server closes while it is being opened", async () => {
    await using served = await Served.start()
    const opening = thrownBy(openStream(served.peer, wire, "pipe.open", { mode: "slow" }))
    await eventually(() => served.answers.events.includes("opening"))
    await served.connection[Symbol.asyncDispose]()
    expect(await opening).toMatchObject({ code: "unavailable" })
    expect(served.answers.events).toEqual(["opening", "aborted"])
  })

  test("when its signal aborts while it is being opened, or before", async () => {
    await using served = await Served.start()
    const controller = new AbortController()
    const opening = thrownBy(openStream(served.peer, wire, "pipe.open", { mode: "slow" }, controller.signal))
    await eventually(() => served.answers.events.includes("opening"))
    controller.abort("enough")
    expect(await opening).toBe("enough")
    await eventually(() => served.connection.inFlight === 0)
    await using pair = await SocketPair.make()
    expect(await thrownBy(openStream(pair.left, wire, "pipe.open", {}, controller.signal))).toBe("enough")
    expect(pair.left.destroyed).toBe(true)
  })

  test("with the handler's fault in the middle", () =>
    piped("fails", async (pipe, served) => {
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "conflict", message: "it broke in the middle" })
      expect(await thrownBy(pipe.next())).toBeInstanceOf(Fault)
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "disposed"])
    }))

  test("with `internal` when the handler says what its contract does not, and the log has it", () =>
    piped("lies", async (pipe, served) => {
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "internal" })
      expect(served.logged).toMatchObject([{ event: "rpc.bug", call: "pipe.open" }])
    }))

  test("with `invalid` when the caller says what its contract does not", () =>
    piped("stubborn", async (pipe, served) => {
      pipe.send({ op: 5 } as unknown as { op: string })
      expect(await thrownBy(pipe.next())).toMatchObject({ code: "invalid", message: expect.stringContaining("op") })
      await eventually(() => served.connection.inFlight === 0)
      expect(served.answers.events).toEqual(["opened", "aborted", "disposed"])
      expect(served.logged).toEqual([])
    }))

  test.each([
    ["not_found", { mode: "missing" } as const],
    ["invalid", { mode: "no such mode" as "echo" }],
    ["limit", { mode: "x".repeat(frameLimits.jsonBytesMax) as "echo" }],
  ])("before it begins, with %s", async (code, input) => {
    await using served = await Served.start()
    expect(await thrownBy(openStream(served.peer, wire, "pipe.open", input))).toMatchObject({ code })
    await eventually(() => served.socket.destroyed)
    expect([served.connection.inFlight, served.answers.events.includes("opened")]).toEqual([0, false])
  })

  test("before it begins, when the other side is silent for too long", async () => {
    await using pair = await SocketPair.make()
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const opening = thrownBy(openStream(pair.left, wire, "pipe.open", {}))
    vi.advanceTimersByTime(rpcLimits.helloMs)
    expect(await opening).toMatchObject({ code: "timeout" })
    expect(vi.getTimerCount()).toBe(0)
  })
})

async function drain(pipe: Pipe): Promise<void> {
  while ((await pipe.next()) !== undefined) continue
}
