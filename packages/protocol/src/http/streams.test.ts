import { once } from "node:events"
import { connect } from "node:net"
import { collected } from "@warren/base/testing/collected.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { isStream, type Contract } from "../contract.ts"
import { StreamApi } from "../testing/http-system.ts"
import { userPlane } from "../user-plane.ts"
import { partOf } from "./range.ts"
import { collectedBytesMax } from "../collected.ts"

const mebibyte = 1024 * 1024

async function served(work: (api: StreamApi) => Promise<void>): Promise<void> {
  await using api = await StreamApi.start()
  await work(api)
}

function pattern(bytes: number): Buffer {
  const made = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at++) made[at] = (at * 31 + (at >> 8) * 7) & 0xff
  return made
}

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer())
const errorOf = async (response: Response): Promise<Record<string, unknown>> =>
  ((await response.json()) as { error: Record<string, unknown> }).error

/** Waits until a number stays the same over many turns of the event loop. */
async function settles(read: () => number): Promise<number> {
  let last = read()
  for (let same = 0; same < 200; same++) {
    await new Promise(setImmediate)
    if (read() !== last) same = 0
    last = read()
  }
  return last
}

test("every stream of the user plane that has a route says what its body is", () => {
  for (const [name, entry] of Object.entries(userPlane as Contract)) {
    if (isStream(entry) && entry.http)
      expect([name, entry.body]).toEqual([name, expect.stringMatching(/^(bytes|result|socket)$/)])
    if (isStream(entry) && entry.size) expect(userPlane).toHaveProperty([entry.size.call])
  }
})

describe("bytes down", () => {
  test.each([0, 1, 10_000, 3 * mebibyte + 7])("are the body, exactly: %i", (bytes) =>
    served(async (api) => {
      api.blobs.set("a", pattern(bytes))
      const response = await api.fetch("/v1/blobs/a")
      expect([response.status, response.headers.get("content-type"), response.headers.get("accept-ranges")]).toEqual([
        200,
        "application/octet-stream",
        "bytes",
      ])
      expect(response.headers.get("x-content-type-options")).toBe("nosniff")
      expect((await bytesOf(response)).equals(pattern(bytes))).toBe(true)
      expect(api.events).toEqual(["disposed"])
    }),
  )

  test.each([
    ["bytes=0-9", 206, "bytes 0-9/1000", 0, 10],
    ["bytes=990-", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=990-5000", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=-10", 206, "bytes 990-999/1000", 990, 1000],
    ["bytes=-5000", 206, "bytes 0-999/1000", 0, 1000],
    ["bytes=999-999", 206, "bytes 999-999/1000", 999, 1000],
    ["bytes=0-1,5-6", 200, null, 0, 1000],
    ["lines=0-1", 200, null, 0, 1000],
    ["bytes=9-1", 200, null, 0, 1000],
    ["bytes=-", 200, null, 0, 1000],
    ["bytes=x", 200, null, 0, 1000],
  ])("Range %s gives %i", (range, status, contentRange, from, to) =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const response = await api.fetch("/v1/blobs/a", { headers: { range } })
      expect([response.status, response.headers.get("content-range")]).toEqual([status, contentRange])
      expect((await bytesOf(response)).equals(pattern(1000).subarray(from, to))).toBe(true)
    }),
  )

  test.each(["bytes=1000-", "bytes=1000-2000", "bytes=-0"])("Range %s is outside", (range) =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const response = await api.fetch("/v1/blobs/a", { headers: { range } })
      expect([response.status, response.headers.get("content-range")]).toEqual([416, "bytes */1000"])
      expect(await errorOf(response)).toMatchObject({ code: "invalid" })
      expect(api.events).toEqual([])
    }),
  )

  test("a part that is asked for in the query, or of a version that may be gone, is no Range", () =>
    served(async (api) => {
      api.blobs.set("a", pattern(1000))
      const asked = await api.fetch("/v1/blobs/a?offset=5&limit=3", { headers: { range: "bytes=0-1" } })
      expect([asked.status, await bytesOf(asked)]).toEqual([200, pattern(1000).subarray(5, 8)])
      const headers = { range: "bytes=0-1", "if-range": '"x"' }
      expect((await api.fetch("/v1/blobs/a", { headers })).status).toBe(200)
    }))

  test("a part is within what is there, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.nat(50),
        fc.oneof(fc.nat(60), fc.constant("")),
        fc.oneof(fc.nat(60), fc.constant("")),
        (size, a, b) => {
          const part = partOf(`bytes=${a}-${b}`, size)
          if (typeof part !== "object") return
          expect(part.limit).toBeGreaterThan(0)
          expect(part.offset + part.limit).toBeLessThanOrEqual(size)
          if (a !== "") expect(part.offset).toBe(a)
          else expect(part.offset + part.limit).toBe(size)
        },
      ),
    )
  })

  test("what fails before the first byte is answered with its status", () =>
    served(async (api) => {
      const response = await api.fetch("/v1/blobs/nothing")
      expect([response.status, (await errorOf(response))["code"]]).toEqual([404, "not_found"])
      const part = await api.fetch("/v1/blobs/nothing", { headers: { range: "bytes=0-1" } })
      expect(part.status).toBe(404)
      expect((await fetch(`http://127.0.0.1:${api.port}/v1/blobs/nothing`)).status).toBe(401)
      expect(api.events).toEqual(["disposed"])
    }))

  test.each(["breaks", "liar"])("what fails after it breaks the answer off (%s)", (name) =>
    served(async (api) => {
      api.blobs.set("breaks", pattern(50_000))
      const headers: Record<string, string> = name === "liar" ? { range: "bytes=0-49" } : {}
      const response = await api.fetch(`/v1/blobs/${name}`, { headers })
      expect(response.ok).toBe(true)
      await expect(response.arrayBuffer()).rejects.toThrow()
      await eventually(() => api.events.includes("disposed"))
    }),
  )

  test("a reader that does not read holds them back; when it goes away they end", () =>
    served(async (api) => {
      const socket = connect(api.port, "127.0.0.1")
      socket.on("error", () => undefined)
      socket.pause()
      socket.write("GET /v1/blobs/endless HTTP/1.1\r\nhost: x\r\nauthorization: me\r\n\r\n")
      await eventually(() => api.produced > 0)
      expect(await settles(() => api.produced)).toBeLessThan(64 * mebibyte)
      expect(api.events).toEqual([])
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
      expect(api.events.filter((event) => event === "disposed").length).toBe(1)
      expect(api.logged).toEqual([])
    }))
})

describe("bytes up", () => {
  test.each([0, 1, 5 * mebibyte + 3])(
    "are taken from the body, exactly, and answered with the last message: %i",
    (bytes) =>
      served(async (api) => {
        const response = await api.fetch("/v1/blobs/a", { method: "PUT", body: new Uint8Array(pattern(bytes)) })
        expect([response.status, await response.json()]).toEqual([200, { bytes }])
        expect(api.blobs.get("a")?.equals(pattern(bytes))).toBe(true)
        expect(api.events).toEqual(["disposed"])
      }),
  )

  test("a handler that fails in the middle is answered with its fault", () =>
    served(async (api) => {
      const body = new Uint8Array(pattern(5 * mebibyte))
      const response = await api.fetch("/v1/blobs/a?bytesMax=1000", { method: "PUT", body })
      expect([response.status, (await errorOf(response))["message"]]).toEqual([429, "the disk is full"])
      expect([api.blobs.size, api.events]).toEqual([0, ["disposed"]])
    }))

  test("a handler that does not take them holds the sender back", () =>
    served(async (api) => {
      api.isDeaf = true
      const socket = connect(api.port, "127.0.0.1").on("error", () => undefined)
      socket.write("PUT /v1/blobs/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 200000000\r\n\r\n")
      const piece = Buffer.alloc(mebibyte)
      let sent = 0
      while (!socket.writableNeedDrain || (await settles(() => socket.bytesWritten)) > sent) {
        sent = socket.bytesWritten
        if (!socket.writableNeedDrain) socket.write(piece)
        await new Promise(setImmediate)
      }
      expect(socket.bytesWritten).toBeLessThan(64 * mebibyte)
      expect(api.taken).toBeLessThan(mebibyte)
      api.isDeaf = false
      await eventually(() => api.taken > mebibyte / 2)
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
    }))

  test("a sender that goes away in the middle leaves nothing", () =>
    served(async (api) => {
      const socket = connect(api.port, "127.0.0.1").on("error", () => undefined)
      socket.write("PUT /v1/blobs/a HTTP/1.1\r\nhost: x\r\nauthorization: me\r\ncontent-length: 100\r\n\r\nhalf of it")
      await eventually(() => api.taken > 0)
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
      expect(api.blobs.size).toBe(0)
    }))
})

describe("a result", () => {
  test("is the last message with all output as text", () =>
    served(async (api) => {
      const response = await api.run("words", { times: 2 })
      expect([response.status, await response.json()]).toEqual([
        200,
        { exitCode: 1, stdout: "€€", stderr: "warn\r\nwarn\r\n", pty: "\ufffd", truncated: false },
      ])
      expect(api.events).toEqual(["disposed"])
    }))

  test.each([
    [{ stdin: "in ü\n" }, "in ü\n"],
    [{ stdin: "" }, ""],
    [{ stdin: true }, ""],
    [{ stdin: false }, ""],
    [{}, ""],
  ])("reads what the body gives: %o", (body, stdout) =>
    served(async (api) => {
      expect(await (await api.run("cat", body)).json()).toMatchObject({ stdout, exitCode: 0 })
    }),
  )

  test("has as much output as the limit, whole characters only, and says when there was more", () =>
    served(async (api) => {
      const result = async (times: number) =>
        (await (await api.run("big", { times })).json()) as { stdout: string; truncated: boolean }
      const fits = Math.floor(collectedBytesMax / 2_000)
      const whole = await result(fits)
      expect([Buffer.byteLength(whole.stdout), whole.truncated]).toEqual([fits * 2_000, false])
      const cut = await result(fits + 1)
      expect([Buffer.byteLength(cut.stdout), cut.truncated]).toEqual([collectedBytesMax, true])
      expect(cut.stdout).toMatch(/^é+$/)
    }))

  test.each([
    ["missing", 404, "not_found"],
    ["breaks", 503, "unavailable"],
    ["lies", 500, "internal"],
  ])("of a tool that %s is %i", (tool, status, code) =>
    served(async (api) => {
      const response = await api.run(tool)
      expect([response.status, (await errorOf(response))["code"]]).toEqual([status, code])
      expect(api.events).toEqual(tool === "missing" ? [] : ["disposed"])
    }),
  )

  test("nobody waits for ends what it was about", () =>
    served(async (api) => {
      const controller = new AbortController()
      const body = JSON.stringify({})
      const work = api
        .fetch("/v1/tools/wait/run", { method: "POST", body, signal: controller.signal })
        .catch(() => "gone")
      const flood = api.fetch("/v1/tools/flood/run", { method: "POST", body, signal: controller.signal })
      flood.catch(() => undefined)
      await eventually(() => api.produced > 0)
      controller.abort()
      expect(await work).toBe("gone")
      await eventually(() => api.events.filter((event) => event === "disposed").length === 2)
      expect(api.logged).toEqual([])
    }))

  test("as events: output with its name, messages with theirs, then the end", () =>
    served(async (api) => {
      const response = await api.run("words", {}, { accept: "text/event-stream" })
      expect(response.headers.get("content-type")).toContain("text/event-stream")
      expect(eventsIn(await response.text())).toEqual([
        ["started", { pid: 7 }],
        ["stdout", { text: "" }],
        ["stderr", { text: "warn\r\n" }],
        ["stdout", { text: "€" }],
        ["pty", { text: "\ufffd" }],
        ["exit", { exitCode: 0, truncated: false }],
        ["end", {}],
      ])
      await eventually(() => api.events.includes("disposed"))
    }))

  test("as events with exact bytes, or a refusal of what is no encoding", () =>
    served(async (api) => {
      const init = { method: "POST", body: "{}", headers: { accept: "text/event-stream" } }
      const exact = eventsIn(await (await api.fetch("/v1/tools/words/run?encoding=base64", init)).text())
      expect(exact).toContainEqual(["pty", { base64: Buffer.from([0xff]).toString("base64") }])
      const refused = await api.fetch("/v1/tools/words/run?encoding=hex", init)
      expect(refused.status).toBe(400)
      expect((await api.run("missing", {}, init.headers)).status).toBe(404)
      expect(eventsIn(await (await api.run("breaks", {}, init.headers)).text()).at(-1)).toEqual([
        "fault",
        { code: "unavailable", message: "gone" },
      ])
    }))

  test("as events that nobody reads is held back, and ends with its reader", () =>
    served(async (api) => {
      const socket = connect(api.port, "127.0.0.1").on("error", () => undefined)
      socket.pause()
      socket.write(
        "POST /v1/tools/flood/run HTTP/1.1\r\nhost: x\r\nauthorization: me\r\naccept: text/event-stream\r\ncontent-length: 2\r\n\r\n{}",
      )
      await eventually(() => api.produced > 0)
      expect(await settles(() => api.produced)).toBeLessThan(64 * mebibyte)
      socket.destroy()
      await eventually(() => api.events.includes("disposed"))
    }))
})

function eventsIn(text: string): [string, unknown][] {
  return text
    .split("\n\n")
    .filter((block) => block.includes("data:"))
    .map((block) => {
      const lines = new Map(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]))
      return [lines.get("event") ?? "", JSON.parse(lines.get("data") ?? "null")]
    })
}

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
