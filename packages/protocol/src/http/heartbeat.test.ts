import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { describe, expect, test } from "vitest"
import { WebSocket, WebSocketServer } from "ws"
import { heartbeat } from "./heartbeat.ts"

const beat = { everyMs: 10, silentMax: 20 }

/** Both ends of a line; the far one answers pings if it is `there`. */
async function line({ isThere }: { isThere: boolean }) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" })
  await once(server, "listening")
  const far = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong: isThere })
  const [near] = (await once(server, "connection")) as [WebSocket]
  const close = async (): Promise<void> => {
    far.terminate()
    near.terminate()
    await new Promise((done) => server.close(done))
  }
  return { near, far, [Symbol.asyncDispose]: close }
}

/** Resolves after many more beats than somebody may be silent. */
async function manyBeats(far: WebSocket): Promise<void> {
  for (let beats = 0; beats < beat.silentMax * 3; beats++) await once(far, "ping")
}

describe("a line with a heartbeat", () => {
  test("is given up when nobody at the other end gives a sign of life", async () => {
    await using open = await line({ isThere: false })
    let pings = 0
    open.far.on("ping", () => pings++)
    heartbeat(open.near, beat)
    const [code] = (await once(open.far, "close")) as [number]
    expect([code, pings]).toEqual([1006, beat.silentMax])
  })

  test("stays for who answers, for who says something, and for who is not being read", async () => {
    await using answers = await line({ isThere: true })
    await using talks = await line({ isThere: false })
    await using asks = await line({ isThere: false })
    await using waits = await line({ isThere: false })
    talks.far.on("ping", () => talks.far.send("still here"))
    asks.far.on("ping", () => asks.far.ping())
    waits.near.pause()
    const all = [answers, talks, asks, waits]
    for (const { near } of all) heartbeat(near, beat)
    await Promise.all(all.map(({ far }) => manyBeats(far)))
    expect(all.map(({ near }) => near.readyState)).toEqual(all.map(() => WebSocket.OPEN))
  })
})
