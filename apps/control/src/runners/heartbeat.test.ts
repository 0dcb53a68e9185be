import type { Socket } from "node:net"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { FrameChannel } from "@warren/base/frame-channel.ts"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { closeServer, connectUnix, listenUnix } from "@warren/base/unix-socket.ts"
import { describe, expect, test } from "vitest"
import { Heartbeat } from "./heartbeat.ts"

/** Of somebody so busy that, whenever they look, the time is up. */
class HurriedClock implements Clock {
  #elapsed = 0

  now(): number {
    return this.#elapsed
  }

  monotonic(): number {
    return this.#elapsed
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise(setImmediate)
    signal?.throwIfAborted()
    this.#elapsed += ms
  }
}

/** A runner that answers nothing, and greets or does not. */
class Quiet implements AsyncDisposable {
  readonly #scope = new Scope()
  readonly socket: string
  hellos = 0

  private constructor(socket: string) {
    this.socket = socket
  }

  static async open(greets: boolean): Promise<Quiet> {
    const folder = await TempFolder.make()
    const quiet = new Quiet(folder.at("r.sock"))
    quiet.#scope.use(folder)
    const sockets = new Set<Socket>()
    const server = await listenUnix(quiet.socket, (socket) => {
      sockets.add(socket)
      const body = (): void => {
        quiet.hellos++
        if (greets) channel.send({ welcome: {} })
      }
      const channel = new FrameChannel(socket, { body, end: () => undefined })
    })
    quiet.#scope.defer(() => closeServer(server, sockets))
    return quiet
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}

describe("while a request takes long, a runner", () => {
  test.each([
    ["that greets is waited for, also by somebody who has no time to look", true, "answered"],
    ["that does not greet is given up", false, "unavailable"],
  ])("%s", async (_, greets, said) => {
    await using runner = await Quiet.open(greets)
    let deaths = 0
    const dead = (): void => void deaths++
    using heartbeat = new Heartbeat(() => connectUnix(runner.socket), dead, new HurriedClock())
    let resolve: (said: string) => void = () => undefined
    const promise = new Promise<string>((done) => (resolve = done))
    const answer = heartbeat.watch(promise).catch((fault: { code: string }) => fault.code)
    for (let turns = 0; runner.hellos < 5 && deaths === 0 && turns < 100_000; turns++) await new Promise(setImmediate)
    resolve("answered")
    expect([await answer, deaths > 0]).toEqual([said, !greets])
  })

  test("that is given up is so for everybody, also for who has only just asked: nobody is told that they cancelled", async () => {
    await using runner = await Quiet.open(false)
    let hangUp: (fault: Fault) => void = () => undefined
    const link = new Promise<never>((_, reject) => (hangUp = reject))
    let second: Promise<unknown> | undefined
    const told = (fault: unknown): string => Fault.from(fault).code
    const greet = (): Promise<Socket> => {
      second ??= heartbeat.watch(link).catch(told)
      return connectUnix(runner.socket)
    }
    const dead = (): void => hangUp(new Fault("cancelled", "the client closed"))
    using heartbeat = new Heartbeat(greet, dead, new HurriedClock())
    const first = heartbeat.watch(link).catch(told)
    expect([await first, await second]).toEqual(["unavailable", "unavailable"])
  })
})
