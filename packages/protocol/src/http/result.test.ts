import { connect } from "node:net"
import { eventually } from "@warren/base/testing/eventually.ts"
import { settles } from "@warren/base/testing/settles.ts"
import { collectedBytesMax } from "../collected.ts"
import { describe, expect, test } from "vitest"
import { errorOf, served } from "../testing/http-system.ts"

const mebibyte = 1024 * 1024

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
