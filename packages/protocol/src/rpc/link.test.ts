import type { Server, Socket } from "node:net"
import { silentLog } from "@warren/base/log.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { describe, expect, test } from "vitest"
import type { Handlers } from "../contract.ts"
import { Answers, wire, type Wire } from "../testing/rpc-system.ts"
import { RunnerLink } from "./link.ts"
import { RpcConnection } from "./server.ts"

const context = { signal: new AbortController().signal, caller: { name: "owner" } }

/** A runner that says its own name whatever it is told, and counts who connected. */
class Runner implements AsyncDisposable {
  readonly sockets = new Set<Socket>()
  readonly answers = new Answers()
  connections = 0
  readonly #server: Promise<Server>

  constructor(path: string, name: string) {
    const handlers: Handlers<Wire> = {
      ...this.answers.handlers(),
      "echo.say": () => Promise.resolve({ value: name }),
    }
    this.#server = listenUnix(path, (socket) => {
      this.connections++
      this.sockets.add(socket)
      void new RpcConnection(socket, { name: "me" }, { contract: wire, handlers, log: silentLog, build: "x" })
    })
  }

  async ready(): Promise<this> {
    await this.#server
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeServer(await this.#server, this.sockets)
  }
}

async function linked(work: (plane: Handlers<Wire>, path: string, link: RunnerLink<Wire>) => Promise<void>) {
  await using folder = await TempFolder.make()
  await using link = new RunnerLink(wire, folder.at("rpc.sock"), "test")
  await work(link.handlers(), folder.at("rpc.sock"), link)
}

const say = (plane: Handlers<Wire>): Promise<{ value: unknown }> => plane["echo.say"]({ value: 1, turns: 0 }, context)
const pipe = (plane: Handlers<Wire>, signal = context.signal) =>
  plane["pipe.open"]({ mode: "echo", bytes: 1 }, { ...context, signal })

describe("RunnerLink", () => {
  test("says that the runner is not there, and finds it when it is", () =>
    linked(async (plane, path) => {
      const refused = { code: "unavailable", hint: expect.stringContaining("npm start") }
      await expect(say(plane)).rejects.toMatchObject(refused)
      await expect(pipe(plane)).rejects.toMatchObject(refused)
      await using _ = await new Runner(path, "first").ready()
      expect(await say(plane)).toEqual({ value: "first" })
    }))

  test("connects once for many who ask at once, and again to the runner's successor", () =>
    linked(async (plane, path) => {
      {
        await using first = await new Runner(path, "first").ready()
        await Promise.all(Array.from({ length: 20 }, () => say(plane)))
        expect(first.connections).toBe(1)
      }
      await using second = await new Runner(path, "second").ready()
      const answers = await Promise.allSettled(Array.from({ length: 20 }, () => say(plane)))
      expect(await say(plane)).toEqual({ value: "second" })
      expect(answers.some((answer) => answer.status === "fulfilled")).toBe(true)
      expect(second.connections).toBe(1)
    }))

  test("has feeds on the same connection and streams on their own, also of the runner's successor", () =>
    linked(async (plane, path) => {
      for (const name of ["first", "second"]) {
        await using runner = await new Runner(path, name).ready()
        const input = { after: 0, last: 2, fill: "", times: 1, thenWaits: false }
        const seen: number[] = []
        for await (const { seq } of plane["count.up"](input, context)) seen.push(seq)
        await using conversation = await pipe(plane)
        conversation.send({ op: name })
        expect([seen, await conversation.next()]).toEqual([[1, 2], { ev: name }])
        expect(runner.connections).toBe(2)
      }
    }))

  test("aborts a stream before it is connected, and connects no more once it was closed", () =>
    linked(async (plane, path, link) => {
      await using runner = await new Runner(path, "first").ready()
      await expect(pipe(plane, AbortSignal.abort("enough"))).rejects.toBe("enough")
      await say(plane)
      await link[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
      for (const work of [say(plane), pipe(plane)]) {
        await expect(work).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("closed") })
      }
      expect(runner.connections).toBe(1)
    }))
})
