import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { expect, test } from "vitest"
import { WebSocketServer, type WebSocket } from "ws"
import { readFeedSocket } from "./feed-socket.ts"
import { Http } from "./http.ts"

/** A Warren that says one thing to whoever follows. */
async function serving(tell: (socket: WebSocket, url: string) => void) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" })
  server.on("connection", (socket, { url = "" }) => tell(socket, url))
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async (): Promise<void> => {
    for (const client of server.clients) client.terminate()
    await new Promise((done) => server.close(done))
  }
  return { http: new Http({ url, token: "t", fetch }), server, [Symbol.asyncDispose]: close }
}

const route = "GET /v1/sessions/events"

test("a feed on a WebSocket is read item by item, from where it is asked for, to its end", async () => {
  let asked = ""
  await using system = await serving((socket, url) => {
    asked = url
    for (const seq of [8, 9]) socket.send(JSON.stringify({ seq, item: { id: `s${seq}`, event: "deleted" } }))
    socket.close(1000)
  })
  const seen: number[] = []
  let opened = 0
  for await (const { seq } of readFeedSocket(system.http, route, { after: 7 }, { opened: () => opened++ }))
    seen.push(seq)
  expect([asked, seen, opened]).toEqual(["/v1/sessions/events?after=7", [8, 9], 1])
})

test("a fault that is told is thrown, and so is a connection that is lost", async () => {
  await using told = await serving((socket) => {
    socket.send(JSON.stringify({ fault: { code: "resync", message: "too far back" } }))
    socket.close(1011)
  })
  await expect(readFeedSocket(told.http, route, {}).next()).rejects.toMatchObject({ code: "resync" })
  await using cut = await serving((socket) => socket.terminate())
  await expect(readFeedSocket(cut.http, route, {}).next()).rejects.toMatchObject({ code: "unavailable" })
  const nobody = new Http({ url: "http://127.0.0.1:1", token: undefined, fetch })
  await expect(readFeedSocket(nobody, route, {}).next()).rejects.toMatchObject({ code: "unavailable" })
})

test("who is told to stop stops, and the other side is rid of them", async () => {
  await using system = await serving(() => undefined)
  const stop = new AbortController()
  const connected = once(system.server, "connection") as Promise<[WebSocket]>
  const next = readFeedSocket(system.http, route, {}, { signal: stop.signal }).next()
  const [socket] = await connected
  const closed = once(socket, "close")
  stop.abort(new Error("enough"))
  await expect(next).rejects.toThrow("enough")
  await closed
})
