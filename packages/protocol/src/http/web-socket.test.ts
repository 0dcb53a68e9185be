import { once } from "node:events"
import { collected } from "@warren/base/testing/collected.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { pattern } from "@warren/base/testing/pattern.ts"
import { settles } from "@warren/base/testing/settles.ts"
import { WebSocket } from "ws"
import { describe, expect, test } from "vitest"
import { served, StreamApi } from "../testing/http-system.ts"

const mebibyte = 1024 * 1024

/** A client on a WebSocket that keeps what it hears. */
class Client {
  readonly socket: WebSocket
  readonly messages: Record<string, unknown>[] = []
  readonly chunks: Buffer[] = []
  code: number | undefined

  constructor(api: StreamApi, path: string, headers: Record<string, string> = { authorization: "me" }) {
    this.socket = new WebSocket(`ws://127.0.0.1:${api.port}${path}`, { headers })
    this.socket.on("error", () => undefined)
    this.socket.on("close", (code) => (this.code = code))
    this.socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) this.chunks.push(data)
      else this.messages.push(JSON.parse(data.toString()) as Record<string, unknown>)
    })
  }

  async open(input: unknown = {}): Promise<this> {
    await once(this.socket, "open")
    this.socket.send(JSON.stringify(input))
    return this
  }

  write(text: string | Buffer, tag = 1): void {
    this.socket.send(Buffer.concat([Buffer.from([tag]), Buffer.from(text)]))
  }

  closed(): Promise<void> {
    return eventually(() => this.code !== undefined)
  }
}

describe("a WebSocket", () => {
  const path = "/v1/tools/cat/run"

  test("carries bytes and messages both ways, and closes at the end", () =>
    served(async (api) => {
      const client = await new Client(api, path).open({ stdin: true, times: 3, tool: "missing" })
      client.write("hello ")
      client.write("wörld")
      await eventually(() => client.chunks.length === 2)
      client.socket.send(JSON.stringify({ op: "signal", name: "SIGINT" }))
      await eventually(() => client.chunks.length === 3)
      client.socket.send(JSON.stringify({ op: "eof" }))
      await client.closed()
      expect(client.chunks.map((chunk) => [chunk[0], chunk.subarray(1).toString()])).toEqual([
        [2, "hello "],
        [2, "wörld"],
        [3, "<SIGINT>"],
      ])
      expect([client.messages, client.code]).toEqual([
        [
          { ev: "started", pid: 7 },
          { ev: "exit", exitCode: 2, truncated: false },
        ],
        1000,
      ])
      expect(api.events.filter((event) => event === "disposed")).toEqual(["disposed"])
    }))

  test("does not keep the request it was", () =>
    served(async (api) => {
      const client = await new Client(api, path).open({ stdin: true })
      await eventually(() => client.messages.length === 1)
      await collected(api.lastRequest as WeakRef<object>)
      client.write("still there")
      await eventually(() => client.chunks.length === 1)
      client.socket.terminate()
    }))

  test("carries large bytes exactly", () =>
    served(async (api) => {
      const client = await new Client(api, path).open({ stdin: true })
      const bytes = pattern(3 * mebibyte)
      for (let at = 0; at < bytes.length; at += 500_000) client.write(bytes.subarray(at, at + 500_000))
      client.socket.send(JSON.stringify({ op: "eof" }))
      await client.closed()
      expect(Buffer.concat(client.chunks.map((chunk) => chunk.subarray(1))).equals(bytes)).toBe(true)
    }))

  test.each([
    ["no token", path, {}, 401],
    ["something else there", "/v1/blobs/a", { authorization: "me" }, 400],
    ["nothing there", "/v1/nowhere", { authorization: "me" }, 404],
  ])("is refused with %s", (_, where, headers, status) =>
    served(async (api) => {
      api.blobs.set("a", pattern(mebibyte))
      const client = new Client(api, where, headers)
      const [, response] = (await once(client.socket, "unexpected-response")) as [unknown, { statusCode: number }]
      expect(response.statusCode).toBe(status)
      client.socket.terminate()
      expect(api.events).toEqual([])
    }),
  )

  test("a plain GET where only a WebSocket is, is not there", () =>
    served(async (api) => {
      expect((await api.fetch(path)).status).toBe(404)
    }))

  test.each([
    ["input of the wrong shape", "cat", { stdin: "text" }, "invalid"],
    ["a tool that is missing", "missing", {}, "not_found"],
    ["a tool that breaks", "breaks", {}, "unavailable"],
    ["a tool that lies", "lies", {}, "internal"],
  ])("tells the fault of %s, and closes", (_, tool, input, code) =>
    served(async (api) => {
      const client = await new Client(api, `/v1/tools/${tool}/run`).open(input)
      await client.closed()
      expect([client.messages.at(-1), client.code]).toMatchObject([{ fault: { code } }, 1011])
    }),
  )

  test.each([
    ["a message of the wrong shape", (client: Client) => client.socket.send('{"op":5}')],
    ["a message that is no object", (client: Client) => client.socket.send("[]")],
    ["bytes with another tag", (client: Client) => client.write("x", 2)],
    ["bytes without a tag", (client: Client) => client.socket.send(Buffer.alloc(0))],
  ])("%s ends it", (_, act) =>
    served(async (api) => {
      const client = await new Client(api, "/v1/tools/wait/run").open()
      await eventually(() => client.messages.length === 1)
      act(client)
      await client.closed()
      expect([client.messages.at(-1), client.code]).toMatchObject([{ fault: { code: "invalid" } }, 1011])
      expect(api.events).toEqual(["aborted", "disposed"])
    }),
  )

  test("a message over the limit ends it", () =>
    served(async (api) => {
      const client = await new Client(api, "/v1/tools/wait/run").open()
      client.write(Buffer.alloc(mebibyte))
      await client.closed()
      expect(client.code).toBe(1009)
      await eventually(() => api.events.includes("disposed"))
    }))

  test("whose client goes away ends what it was about", () =>
    served(async (api) => {
      const client = await new Client(api, "/v1/tools/wait/run").open()
      await eventually(() => client.messages.length === 1)
      client.socket.terminate()
      await eventually(() => api.events.includes("disposed"))
      expect(api.events).toEqual(["aborted", "disposed"])
      expect(api.logged).toEqual([])
    }))

  test("whose client does not read holds the tool back", () =>
    served(async (api) => {
      const client = await new Client(api, "/v1/tools/flood/run").open()
      client.socket.pause()
      expect(await settles(() => api.produced)).toBeLessThan(64 * mebibyte)
      const produced = api.produced
      client.socket.resume()
      await eventually(() => api.produced > produced)
      client.socket.terminate()
      await eventually(() => api.events.includes("disposed"))
    }))

  test("whose tool does not read holds the client back", () =>
    served(async (api) => {
      api.isDeaf = true
      const client = await new Client(api, path).open({ stdin: true })
      for (let n = 0; n < 64; n++) client.write(Buffer.alloc(mebibyte / 2))
      await settles(() => client.socket.bufferedAmount)
      expect(client.socket.bufferedAmount).toBeGreaterThan(0)
      expect(api.taken).toBeLessThan(4 * mebibyte)
      api.isDeaf = false
      await eventually(() => client.socket.bufferedAmount === 0)
      client.socket.terminate()
    }))

  test("is cut when the server closes", async () => {
    const api = await StreamApi.start()
    const client = await new Client(api, "/v1/tools/wait/run").open()
    await eventually(() => client.messages.length === 1)
    await api[Symbol.asyncDispose]()
    await client.closed()
    await eventually(() => api.events.includes("disposed"))
  })
})
