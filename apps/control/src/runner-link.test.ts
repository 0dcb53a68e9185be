import { mkdtempSync, rmSync } from "node:fs"
import type { Server, Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { silentLog } from "@warren/base/log.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { afterAll, describe, expect, test } from "vitest"
import { RunnerLink } from "./runner-link.ts"

const folder = mkdtempSync(join(tmpdir(), "wl-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const context = { signal: new AbortController().signal, caller: { name: "owner" } }

/** A runner that answers health only, and counts who connected. */
class Runner implements AsyncDisposable {
  readonly sockets = new Set<Socket>()
  connections = 0
  readonly #server: Promise<Server>

  constructor(path: string, pid: number) {
    const health = { user: "me", version: "1", build: "x", startedAt: new Date(0).toISOString(), degraded: [] }
    const answers = { "health.check": () => Promise.resolve({ status: "ok", pid, ...health }) }
    this.#server = listenUnix(path, (socket) => {
      this.connections++
      this.sockets.add(socket)
      void new RpcConnection(
        socket,
        { name: "me" },
        { contract: userPlane, handlers: answers as unknown as UserPlane, log: silentLog, build: "x" },
      )
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

describe("RunnerLink", () => {
  test("says that the runner is not there, and finds it when it is", async () => {
    const path = join(folder, "a.sock")
    await using link = new RunnerLink(path)
    const plane = link.handlers()
    await expect(plane["health.check"]({}, context)).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("npm start"),
    })
    await using _ = await new Runner(path, 1).ready()
    expect(await plane["health.check"]({}, context)).toMatchObject({ pid: 1 })
  })

  test("connects once for many who ask at once, and again to the runner's successor", async () => {
    const path = join(folder, "b.sock")
    await using link = new RunnerLink(path)
    const plane = link.handlers()
    {
      await using first = await new Runner(path, 1).ready()
      await Promise.all(Array.from({ length: 20 }, () => plane["health.check"]({}, context)))
      expect(first.connections).toBe(1)
    }
    await using second = await new Runner(path, 2).ready()
    const answers = await Promise.allSettled(Array.from({ length: 20 }, () => plane["health.check"]({}, context)))
    expect(await plane["health.check"]({}, context)).toMatchObject({ pid: 2 })
    expect(answers.some((answer) => answer.status === "fulfilled")).toBe(true)
    expect(second.connections).toBe(1)
  })
})
