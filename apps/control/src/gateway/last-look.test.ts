import { once } from "node:events"
import { createServer } from "node:http"
import { connect, type AddressInfo, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { errnoOf } from "@warren/base/fault.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { LastLook } from "./last-look.ts"

const headersTimeout = 100

describe("a request whose time is up", () => {
  const lastLook = new LastLook()
  const server = createServer((_, response) => response.end("answered"))
  const late: string[] = []
  const whole = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

  const sendAway = async (socket: Socket): Promise<void> => {
    if (await lastLook.isSilent(socket)) socket.destroy()
  }

  beforeAll(async () => {
    Object.assign(server, { headersTimeout, requestTimeout: 0, connectionsCheckingInterval: 10 })
    lastLook.guard(server)
    server.on("clientError", (error: Error, socket: Socket) => {
      late.push(errnoOf(error))
      void sendAway(socket)
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
  })
  afterAll(() => server.close())

  /** Accepted, and then there is no time to look until it is too late. */
  const saidWhileBusy = async (said: string): Promise<string> => {
    const accepted = once(server, "connection")
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
    await Promise.all([accepted, once(socket, "connect")])
    socket.write(said)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * headersTimeout)
    return text(socket)
  }

  test("and that was whole in time is answered, though nobody had looked", async () => {
    expect(await saidWhileBusy(whole)).toContain("answered")
    expect(late).toEqual(["ERR_HTTP_REQUEST_TIMEOUT"])
  })

  test("and that is not whole is not, also when more of it comes at the last moment", async () => {
    for (const said of ["", "GET / HTTP/1.1\r\nHost: l"]) expect([said, await saidWhileBusy(said)]).toEqual([said, ""])
  })
})
