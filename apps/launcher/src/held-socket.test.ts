import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Writable } from "node:stream"
import { freePort } from "@warren/base/testing/free-port.ts"
import { describe, expect, test } from "vitest"
import { holdSocket, type HeldSocket } from "./held-socket.ts"

const program = `
  const server = require("node:http").createServer((_, answer) => answer.end(String(process.pid)))
  server.listen({ fd: 3 }, () => process.stdout.write("listening"))
  process.once("SIGTERM", () => server.close())`

function serve({ handle }: HeldSocket): ChildProcess {
  return spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit", handle as Writable] })
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const gone = once(child, "exit")
  child.kill(signal)
  await gone
}

const ask = async (port: number): Promise<number> =>
  Number(await (await fetch(`http://127.0.0.1:${port}`, { headers: { connection: "close" } })).text())

describe("a place that is held", () => {
  test.each(["SIGKILL", "SIGTERM"] as const)("lets who comes wait between two servers (%s)", async (signal) => {
    const port = await freePort()
    using socket = holdSocket("127.0.0.1", port)
    if (!socket) throw new Error("this Node cannot hold a socket")
    // Nobody has listened yet: there is nothing to wait for.
    await expect(ask(port)).rejects.toThrow()
    const first = serve(socket)
    await once(first.stdout ?? first, "data")
    expect(await ask(port)).toBe(first.pid)
    await end(first, signal)
    const waiting = Promise.all([ask(port), ask(port), ask(port)])
    const second = serve(socket)
    expect(await waiting).toEqual([second.pid, second.pid, second.pid])
    await end(second, "SIGKILL")
  })

  test("that somebody else has is not held, nor is one that has no address", async () => {
    const taken = createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    expect(holdSocket("127.0.0.1", (taken.address() as AddressInfo).port)).toBeUndefined()
    expect(holdSocket("localhost", await freePort())).toBeUndefined()
    await new Promise((done) => taken.close(done))
  })
})
