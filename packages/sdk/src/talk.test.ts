import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { describe, expect, test } from "vitest"
import { WebSocketServer, type WebSocket } from "ws"
import { Http } from "./http.ts"
import { isPiece } from "./run-events.ts"
import { Talk } from "./talk.ts"

const route = "GET /v1/sessions/{session}/ports/{port}/connect"
const pieceBytes = 64 * 1024
const pieces = 600

/** Says forty megabytes, each piece when the one before is on its way. */
class Flood {
  sent = 0

  async pour(socket: WebSocket): Promise<void> {
    for (let n = 0; n < pieces; n++) {
      const piece = Buffer.alloc(1 + pieceBytes, n % 256)
      piece[0] = 2
      await new Promise((done) => socket.send(piece, done))
      this.sent++
    }
    socket.close(1000)
  }
}

describe("a talk whose reader is slow", () => {
  test("holds the other side back, and tells everything in order in the end", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" })
    await once(server, "listening")
    const connected = once(server, "connection") as Promise<[WebSocket]>
    const http = new Http({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: "t", fetch })
    await using talk = new Talk(http, route, { session: "s", port: 80 })
    const [socket] = await connected
    const flood = new Flood()
    const poured = flood.pour(socket)
    let [before, stillLooks] = [0, 0]
    /** How often in a row nothing has moved. */
    const still = (): number => {
      stillLooks = flood.sent > 0 && flood.sent === before ? stillLooks + 1 : 0
      before = flood.sent
      return stillLooks
    }
    await expect.poll(still, { interval: 100, timeout: 30_000 }).toBe(5)
    expect(flood.sent).toBeLessThan(pieces / 2)
    const seen: (number | undefined)[] = []
    for (let item = await talk.next(); item !== undefined; item = await talk.next())
      if (isPiece(item)) seen.push(item.bytes[0])
    await poured
    expect(seen).toEqual(Array.from({ length: pieces }, (_, n) => n % 256))
    await new Promise((done) => server.close(done))
  })
})
