import { connect } from "node:net"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { request, servedThings } from "../testing/things-api.ts"

describe("routes on a real server", () => {
  test("answer calls, refuse bad bodies, and tell what is not there", () =>
    servedThings(async (_, port) => {
      expect(await (await request(port, "/v1/things/a?limit=3")).json()).toMatchObject({ id: "a", limit: 3 })
      expect((await request(port, "/v1/things/a", { method: "POST", body: "{" })).status).toBe(400)
      expect((await request(port, "/v1/things/a", { method: "POST", body: new Uint8Array([0xff]) })).status).toBe(400)
      expect((await request(port, "/nowhere")).status).toBe(404)
      expect((await request(port, "/v1/fail?kind=bug")).status).toBe(500)
      expect((await request(port, "/v1/fail?kind=text")).status).toBe(500)
    }))

  test("refuse a body over the limit that claims no length, and are still there", () =>
    servedThings(async (_, port) => {
      const socket = connect(port, "127.0.0.1")
      socket.on("error", () => undefined)
      socket.write("POST /v1/things/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ntransfer-encoding: chunked\r\n\r\n")
      let answer = ""
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
      const piece = `10000\r\n${" ".repeat(0x10000)}\r\n`
      for (let n = 0; n < 17 && socket.writable; n++) socket.write(piece)
      await eventually(() => answer.includes("\r\n\r\n") || socket.destroyed)
      expect(answer).toMatch(/^HTTP\/1\.1 429 /)
      socket.destroy()
      expect((await request(port, "/v1/things/a")).status).toBe(200)
    }))

  test("a client that goes away in the middle of its body is no bug", () =>
    servedThings(async (api, port) => {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined)
      socket.write(`POST /v1/things/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 100\r\n\r\n{"text":`)
      // Whoever answers this has seen that.
      await request(port, "/v1/things/a")
      socket.destroy()
      for (let n = 0; n < 3; n++) await request(port, "/v1/things/a")
      expect(api.logged).toEqual([])
    }))

  test("a client that goes away aborts the call's signal", () =>
    servedThings(async (api, port) => {
      const controller = new AbortController()
      const work = request(port, "/v1/wait", { signal: controller.signal }).catch(() => "gone")
      await eventually(() => api.events.includes("started"))
      controller.abort()
      expect(await work).toBe("gone")
      await eventually(() => api.events.includes("aborted"))
      expect(api.logged).toEqual([])
    }))
})
