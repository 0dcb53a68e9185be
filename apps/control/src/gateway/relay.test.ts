import { once } from "node:events"
import { createServer } from "node:http"
import { connect, createServer as createServer2 } from "node:http2"
import type { AddressInfo } from "node:net"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { relay } from "./relay.ts"
import { requestHead } from "./relayed-head.ts"

test("over HTTP/2, too, bodies pass both ways, and nothing that belongs to one connection", async () => {
  await using scope = new Scope()
  const folder = scope.use(await TempFolder.make())
  const socketPath = folder.at("gateway.sock")
  const gateway = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      response.setHeader("Set-Cookie", ["a=1", "b=2"]).setHeader("X-Warren-Refused", "forbidden")
      response.writeHead(201, { "keep-alive": "timeout=9" })
      response.end(JSON.stringify({ head: request.headers, body: Buffer.concat(pieces).toString() }))
    })
  }).listen(socketPath)
  scope.defer(() => void gateway.close())
  await once(gateway, "listening")
  const refusals: (string | undefined)[] = []
  const front = createServer2((request, response) => {
    const visitor = { host: request.authority, scheme: "https", address: "::ffff:10.1.2.3" } as const
    const head = requestHead(request.rawHeaders, visitor)
    const way = { socketPath, path: request.url, method: request.method, head, signal: scope.signal }
    void relay(request, response, way, false).then(({ refused }) => refusals.push(refused))
  }).listen(0, "127.0.0.1")
  scope.defer(() => void front.close())
  await once(front, "listening")
  const client = connect(`http://127.0.0.1:${(front.address() as AddressInfo).port}`)
  scope.defer(() => client.close())
  const sent = client.request({
    ":method": "POST",
    ":path": "/x",
    "x-warren-client": "6.6.6.6",
    x_warren_y: "z",
    a: "b",
  })
  sent.end("a body without a length")
  const [head] = (await once(sent, "response")) as [Record<string, unknown>]
  let text = ""
  for await (const piece of sent.setEncoding("utf8") as AsyncIterable<string>) text += piece
  expect(head).toMatchObject({ ":status": 201, "set-cookie": ["a=1", "b=2"] })
  expect(Object.keys(head)).not.toEqual(expect.arrayContaining(["x-warren-refused"]))
  const seen = JSON.parse(text) as { head: Record<string, string>; body: string }
  expect(seen.body).toBe("a body without a length")
  expect(seen.head).toMatchObject({ a: "b", "x-warren-client": "10.1.2.3", "x-warren-scheme": "https" })
  expect(Object.keys(seen.head).filter((name) => name.startsWith(":") || name.includes("_"))).toEqual([])
  expect(refusals).toEqual(["forbidden"])
})
