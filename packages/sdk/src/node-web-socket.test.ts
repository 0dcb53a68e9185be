import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { describe, expect, test } from "vitest"
import { WebSocketServer, type WebSocket } from "ws"
import { openSocket } from "./node-web-socket.ts"

const beat = { everyMs: 10, silentMax: 20 }

/** One that answers no ping by itself. */
async function server() {
  const listening = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false })
  await once(listening, "listening")
  const url = `ws://127.0.0.1:${(listening.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    for (const client of listening.clients) client.terminate()
    await new Promise((done) => listening.close(done))
  }
  return { listening, url, [Symbol.asyncDispose]: close }
}

describe("a socket of a program", () => {
  test("is lost when nothing is heard any more", async () => {
    await using silent = await server()
    const socket = openSocket(silent.url, {}, beat)
    const code = await new Promise((lost) =>
      socket.addEventListener("close", (event: { code: number }) => lost(event.code)),
    )
    expect(code).toBe(1006)
  })

  test("stays while the other side says that it is there", async () => {
    await using alive = await server()
    const connected = once(alive.listening, "connection") as Promise<[WebSocket]>
    const socket = openSocket(alive.url, {}, beat)
    const [near] = await connected
    const pings = setInterval(() => near.ping(), beat.everyMs)
    for (let heard = 0; heard < beat.silentMax * 3; heard++) await once(near, "pong")
    clearInterval(pings)
    expect(near.readyState).toBe(near.OPEN)
    socket.close()
  })

  test("stays, and says so, while its reader is busy", async () => {
    await using silent = await server()
    const connected = once(silent.listening, "connection") as Promise<[WebSocket]>
    const socket = openSocket(silent.url, {}, beat)
    const [near] = await connected
    await new Promise((opened) => socket.addEventListener("open", opened))
    socket.pause?.()
    for (let heard = 0; heard < beat.silentMax * 3; heard++) await once(near, "ping")
    expect(near.readyState).toBe(near.OPEN)
    socket.resume?.()
    socket.close()
  })
})
