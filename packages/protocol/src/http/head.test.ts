import { once } from "node:events"
import { request, type IncomingMessage } from "node:http"
import { expect, test } from "vitest"
import { StreamApi } from "../testing/http-system.ts"

test("HEAD says what there is without beginning to send it", async () => {
  await using api = await StreamApi.start()
  api.blobs.set("a", Buffer.alloc(70_000))
  const answer = await api.fetch("/v1/blobs/a", { method: "HEAD" })
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-length")).toBe("70000")
  expect(answer.headers.get("accept-ranges")).toBe("bytes")
  expect((await api.fetch("/v1/blobs/none", { method: "HEAD" })).status).toBe(404)
  expect((await api.fetch("/v1/blobs/endless", { method: "HEAD" })).status).toBe(404)
  expect(api.produced).toBe(0)
  expect(api.events).toEqual([])
})

test("a header that only looks like an upgrade is none", async () => {
  await using api = await StreamApi.start()
  api.blobs.set("a", Buffer.from("whole"))
  // fetch refuses to send it.
  const headers = { authorization: "me", upgrade: "websocket" }
  const asked = request({ port: api.port, host: "127.0.0.1", path: "/v1/blobs/a", headers }).end()
  const [answer] = (await once(asked, "response")) as [IncomingMessage]
  expect((await answer.toArray()).join("")).toBe("whole")
})
