import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { expect, test } from "vitest"
import { StreamApi } from "../testing/http-system.ts"

async function asked(api: StreamApi, upgrade: string): Promise<[Socket, string]> {
  // It does not hang up because the other side has.
  const socket = connect({ port: api.port, host: "127.0.0.1", allowHalfOpen: true })
  const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
  socket.write(`GET /v1/blobs/a HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: ${upgrade}\r\n${key}\r\n\r\n`)
  const [told] = (await once(socket, "data")) as [Buffer]
  return [socket, told.toString()]
}

test.each(["h2c", "websocket", "x, y"])(
  "an upgrade that is not to be had is refused, not left waiting: %s",
  async (to) => {
    await using api = await StreamApi.start()
    const [socket, told] = await asked(api, to)
    expect(told).toMatch(/^HTTP\/1\.1 4/)
    socket.destroy()
  },
)

test("who was refused and does not leave holds nothing up", async () => {
  const api = await StreamApi.start()
  const [first] = await asked(api, "h2c")
  const [second] = await asked(api, "websocket")
  await api[Symbol.asyncDispose]()
  for (const socket of [first, second]) socket.destroy()
})
