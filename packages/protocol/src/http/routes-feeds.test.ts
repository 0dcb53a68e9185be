import { connect } from "node:net"
import { eventually } from "@warren/base/testing/eventually.ts"
import { describe, expect, test } from "vitest"
import { errorOf } from "../testing/http-system.ts"
import { eventsIn, request, servedThings, ThingsApi } from "../testing/things-api.ts"

describe("routes", () => {
  test("stream a feed as events with their numbers, from where the reader was", async () => {
    const api = new ThingsApi()
    for (let n = 1; n <= 4; n++) api.journal.append({ n })
    const read = async (
      path: string,
      headers: Record<string, string>,
      count: number,
    ): Promise<Record<string, string>[]> => {
      const controller = new AbortController()
      const response = await api.get(path, { headers, signal: controller.signal })
      expect(response.headers.get("content-type")).toContain("text/event-stream")
      let text = ""
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true })
        if (eventsIn(text).length >= count) break
      }
      controller.abort()
      return eventsIn(text)
    }
    expect(await read("/v1/follow?after=2", {}, 2)).toEqual([
      { id: "3", event: "item", data: '{"n":3}' },
      { id: "4", event: "item", data: '{"n":4}' },
    ])
    expect((await read("/v1/follow?after=0", { "last-event-id": "3" }, 1)).map(({ id }) => id)).toEqual(["4"])
    for (let n = 5; n <= 30; n++) api.journal.append({ n })
    const [lost] = await read("/v1/follow?after=1", {}, 1)
    expect([lost?.["event"], JSON.parse(lost?.["data"] ?? "{}")]).toMatchObject([
      "fault",
      { code: "resync", hint: expect.stringContaining("after 30") },
    ])
    const refused = await api.get("/v1/follow", { headers: { "last-event-id": "x" } })
    expect([refused.status, (await errorOf(refused))["code"]]).toEqual([400, "invalid"])
  })
})

describe("routes on a real server", () => {
  test("a reader that goes away ends the feed", () =>
    servedThings(async (api, port) => {
      const controller = new AbortController()
      const response = await request(port, "/v1/flood", { signal: controller.signal })
      await response.body?.getReader().read()
      controller.abort()
      await eventually(() => api.events.includes("flood over"))
      expect(api.logged).toEqual([])
    }))

  test("a reader that goes away while nothing happens ends the feed, and is no bug", () =>
    servedThings(async (api, port) => {
      const controller = new AbortController()
      api.journal.append({ n: 1 })
      const response = await request(port, "/v1/follow", { signal: controller.signal })
      await response.body?.getReader().read()
      controller.abort()
      await eventually(() => api.events.includes("follow over"))
      await new Promise(setImmediate)
      expect(api.logged).toEqual([])
    }))

  test("a reader that does not read holds back the feed, and nothing grows", () =>
    servedThings(async (api, port) => {
      const socket = connect(port, "127.0.0.1")
      socket.pause()
      socket.write("GET /v1/flood HTTP/1.1\r\nhost: x\r\nauthorization: me\r\n\r\n")
      await eventually(() => api.produced > 0)
      let last = -1
      for (let same = 0; same < 200; same++) {
        await new Promise(setImmediate)
        if (api.produced !== last) same = 0
        last = api.produced
      }
      // The kernel's buffers hold some megabytes; a feed without an end that has stopped within them is held back.
      expect(api.produced * 10_000).toBeLessThan(64 * 1024 * 1024)
      expect(api.events).toEqual([])
      socket.destroy()
      await eventually(() => api.events.includes("flood over"))
    }))

  test("a reader that comes back with Last-Event-ID misses nothing and sees nothing twice", () =>
    servedThings(async (api, port) => {
      const seen: number[] = []
      for (let n = 1; n <= 4; n++) api.journal.append({ n })
      while (seen.length < 4) {
        const controller = new AbortController()
        const headers = seen.length === 0 ? {} : { "last-event-id": String(seen.at(-1)) }
        const response = await request(port, "/v1/follow", { headers, signal: controller.signal })
        const reader = response.body?.getReader()
        const { value } = (await reader?.read()) ?? {}
        for (const { id } of eventsIn(new TextDecoder().decode(value)).slice(0, 1)) seen.push(Number(id))
        controller.abort()
      }
      expect(seen).toEqual([1, 2, 3, 4])
    }))
})
