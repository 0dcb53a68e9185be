import { once } from "node:events"
import { request } from "node:http"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { E2bSystem, sdks } from "./system.ts"

const domain = "e2b.test"
const system = await E2bSystem.start({ WARREN_E2B_DOMAIN: domain })
afterAll(() => system[Symbol.asyncDispose]())
const { options } = system

/** Says what it was asked, and echoes what comes over a WebSocket without a library. */
const server = `
const http = require("node:http"), crypto = require("node:crypto")
const server = http.createServer((req, res) => {
  let body = ""
  req.on("data", (piece) => (body += piece)).on("end", () => {
    res.setHeader("x-inside", "yes")
    res.setHeader("set-cookie", ["a=1", "b=2"])
    res.statusCode = req.url === "/teapot" ? 418 : 200
    res.end(JSON.stringify({ method: req.method, url: req.url, host: req.headers.host, raw: req.rawHeaders, body }))
  })
})
server.on("upgrade", (req, socket) => {
  const accept = crypto.createHash("sha1").update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64")
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n")
  socket.on("data", (frame) => {
    const mask = frame.subarray(2, 6), data = frame.subarray(6)
    const text = Buffer.from(data.map((byte, at) => byte ^ mask[at % 4]))
    socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]))
  }).on("error", () => undefined)
})
server.listen(3000, "127.0.0.1", () => console.log("ready"))
`

interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: string
}

/** fetch says no to a Host of one's own. */
async function ask(path: string, headers: Record<string, string>, method = "GET", body = ""): Promise<Answer> {
  const sent = request({ port: system.api.port, host: "127.0.0.1", path, headers, method, agent: false })
  sent.end(body)
  const [answer] = (await once(sent, "response")) as [import("node:http").IncomingMessage]
  let text = ""
  for await (const piece of answer) text += String(piece)
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: text }
}

describe.each(sdks)("ports by $version", ({ sdk }) => {
  let sandbox: InstanceType<typeof sdk.Sandbox>
  const serve = async (one: typeof sandbox): Promise<void> => {
    await one.files.write("server.cjs", server)
    await one.commands.run("nohup node server.cjs > log 2>&1 &\nuntil grep -q ready log; do sleep 0.05; done", {
      timeoutMs: 30_000,
    })
  }
  beforeAll(async () => {
    sandbox = await sdk.Sandbox.create("base", { ...options, timeoutMs: 600_000 })
    await serve(sandbox)
  })
  afterAll(() => sandbox.kill())

  test("are reached by host name, as they were asked", async () => {
    const host = sandbox.getHost(3000)
    expect(host).toBe(`3000-${sandbox.sandboxId}.${domain}`)
    const answer = await ask("/some/pa%20th%2Fx?x=1", { host, "X-Mixed-Case": "kept" }, "POST", "sent")
    expect(answer.status).toBe(200)
    expect(answer.headers["x-inside"]).toBe("yes")
    expect(answer.headers["set-cookie"]).toEqual(["a=1", "b=2"])
    const seen = JSON.parse(answer.body) as { method: string; url: string; host: string; raw: string[]; body: string }
    expect(seen).toMatchObject({ method: "POST", url: "/some/pa%20th%2Fx?x=1", host, body: "sent" })
    expect(seen.raw).toContain("X-Mixed-Case")
    expect((await ask("/teapot", { host })).status).toBe(418)
    expect((await ask("/", { host }, "HEAD")).body).toBe("")
  })

  test("are reached by header", async () => {
    const headers = {
      host: `127.0.0.1:${system.api.port}`,
      "e2b-sandbox-id": sandbox.sandboxId,
      "e2b-sandbox-port": "3000",
    }
    const answer = await ask("/by-header", headers)
    const seen = JSON.parse(answer.body) as { url: string; raw: string[] }
    expect(seen.url).toBe("/by-header")
    expect(seen.raw.map((text) => text.toLowerCase())).not.toContain("e2b-sandbox-id")
    expect((await ask("/", { ...headers, "e2b-sandbox-port": "99999" })).status).toBe(400)
  })

  test("take WebSockets", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${system.api.port}/chat`, { headers: { host: sandbox.getHost(3000) } })
    await once(socket, "open")
    socket.send("echo this")
    const [message] = (await once(socket, "message")) as [Buffer]
    expect(message.toString()).toBe("echo this")
    socket.close()
    const refused = new WebSocket(`ws://127.0.0.1:${system.api.port}/`, { headers: { host: sandbox.getHost(3001) } })
    const [failure] = (await once(refused, "error")) as [Error]
    expect(failure.message).toContain("502")
  })

  test("that are closed, or in sandboxes that are not there, say so", async () => {
    const closed = await ask("/", { host: sandbox.getHost(3001) })
    expect(closed.status).toBe(502)
    expect(JSON.parse(closed.body)).toEqual({
      ...{
        sandboxId: sandbox.sandboxId,
        message: "The sandbox is running but port is not open",
        port: 3001,
        code: 502,
      },
    })
    const id = "0".repeat(40)
    const absent = await ask("/", { host: `3000-${id}.${domain}` })
    expect([absent.status, JSON.parse(absent.body)]).toEqual([
      502,
      { sandboxId: id, message: "The sandbox was not found", code: 502 },
    ])
  })

  test("are for those who have the token, where they are not for everybody", async () => {
    const network = { allowPublicTraffic: false, maskRequestHost: "inside.example:${PORT}" }
    const closed = await sdk.Sandbox.create("base", { ...options, network })
    await serve(closed)
    const host = closed.getHost(3000)
    const token = closed.trafficAccessToken ?? ""
    expect(token).toMatch(/^[0-9a-f]{64}$/)
    expect(sandbox.trafficAccessToken).toBeUndefined()
    const refused = await ask("/", { host })
    expect([refused.status, (JSON.parse(refused.body) as { code: number }).code]).toEqual([403, 403])
    expect((await ask("/", { host, "e2b-traffic-access-token": "0".repeat(64) })).status).toBe(403)
    const answer = await ask("/", { host, "e2b-traffic-access-token": token })
    expect((JSON.parse(answer.body) as { host: string }).host).toBe("inside.example:3000")
    await closed.kill()
    expect((await ask("/", { host, "e2b-traffic-access-token": token })).status).toBe(502)
  })

  test("wake a sandbox that sleeps, if it may be woken", async () => {
    const sleeper = await sdk.Sandbox.create("base", {
      ...options,
      lifecycle: { onTimeout: "pause", autoResume: true } as never,
    })
    await serve(sleeper)
    await sleeper.pause()
    expect((await ask("/", { host: sleeper.getHost(3000) })).status).toBe(200)
    expect((await sleeper.getInfo()).state).toBe("running")
    await sleeper.kill()
  })

  test("the API itself is at a name of its own", async () => {
    const list = await ask("/v2/sandboxes", { host: `api.${domain}`, "x-api-key": options.apiKey })
    expect(list.status).toBe(200)
    expect(list.body).toContain(sandbox.sandboxId)
    expect((await ask("/v2/sandboxes", { host: `api.${domain}` })).status).toBe(401)
  })
})
