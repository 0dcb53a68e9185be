import { once } from "node:events"
import type { Socket } from "node:net"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { EgressSystem, Loopback, reachable } from "./testing/egress-system.ts"

const chunk = Buffer.alloc(64 * 1024, "x")
const total = 200 * 1024 * 1024
const flatBytes = 32 * 1024 * 1024

async function send(socket: NodeJS.WritableStream): Promise<void> {
  for (let sent = 0; sent < total; sent += chunk.length) if (!socket.write(chunk)) await once(socket, "drain")
}

/** Reads everything, and says the most that was kept meanwhile beyond what was kept before. */
async function drain(socket: Socket, before: number): Promise<{ bytes: number; most: number }> {
  let [bytes, most, next] = [0, 0, 0]
  for await (const piece of socket) {
    bytes += (piece as Buffer).length
    if (bytes < next) continue
    next = bytes + total / 20
    most = Math.max(most, keptBytes() - before)
  }
  return { bytes, most }
}

describe("200 MB", () => {
  test.each(["tcp://", ""])("through a tunnel or as HTTP (%j), with flat memory", async (scheme) => {
    await using server = scheme
      ? await Loopback.tcp((socket) => void send(socket).then(() => socket.end()))
      : await Loopback.http((_, response) => void send(response).then(() => response.end()))
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      policy: {
        mode: "list",
        allow: [`${scheme}allowed.test:${server.port}`],
        allowPrivate: [`127.0.0.1:${server.port}`],
      },
    })
    const host = `allowed.test:${server.port}`
    const before = keptBytes()
    const client = await system.connect()
    client.write(
      scheme
        ? `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
        : `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    )
    const { bytes, most } = await drain(client, before)
    expect(bytes).toBeGreaterThan(total)
    expect(most).toBeLessThan(flatBytes)
    await eventually(() => system.proxy.counters().open === 0)
    expect(system.proxy.counters().receivedBytes).toBeGreaterThanOrEqual(total)
  })

  test("uploaded, with flat memory and an answer at the end", async () => {
    await using server = await Loopback.http((request, response) => {
      let bytes = 0
      request.on("data", (piece: Buffer) => (bytes += piece.length))
      request.on("end", () => response.end(`took ${bytes}`))
    })
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const host = `allowed.test:${server.port}`
    const before = keptBytes()
    const client = await system.connect()
    client.write(
      `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${total}\r\nConnection: close\r\n\r\n`,
    )
    let answer = ""
    client.on("data", (piece: Buffer) => (answer += piece.toString()))
    await send(client)
    await once(client, "close")
    expect(answer).toContain(`took ${total}`)
    expect(keptBytes() - before).toBeLessThan(flatBytes)
  })

  test("a reader that does not read stops the writer", async () => {
    let sent = 0
    await using server = await Loopback.tcp((socket) => {
      void (async () => {
        for (; sent < total; sent += chunk.length) if (!socket.write(chunk)) await once(socket, "drain")
      })().catch(() => undefined)
    })
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      policy: {
        mode: "list",
        allow: [`tcp://allowed.test:${server.port}`],
        allowPrivate: [`127.0.0.1:${server.port}`],
      },
    })
    const client = await system.connect()
    client.write(`CONNECT allowed.test:${server.port} HTTP/1.1\r\nHost: allowed.test:${server.port}\r\n\r\n`)
    await once(client, "readable")
    let seen = -1
    while (seen !== sent) {
      seen = sent
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(sent).toBeLessThan(40 * 1024 * 1024)
    client.destroy()
  })
})
