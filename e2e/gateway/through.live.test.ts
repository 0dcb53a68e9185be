import { createHash, randomBytes } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { resolve } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { Warren } from "../warren.ts"
import { Door, ownHost, type Ask } from "./door.ts"

const server = readFileSync(
  resolve(import.meta.dirname, "../../packages/user-plane/src/gateway/testing/inside-server.cjs"),
  "utf8",
)
const inside = 3000
interface Made {
  readonly token: string
  readonly about: { readonly id: string }
}
const json = { "content-type": "application/json" }

describe.skipIf(process.getuid?.() !== 0)("a gateway, through the control plane", { timeout: 180_000 }, () => {
  let warren: Warren
  let door: Door
  let session = ""
  let signIn = ""

  const api = async (method: string, path: string, body?: object, headers: object = {}) => {
    const bearer = { authorization: `Bearer ${await warren.token()}` }
    const answer = await fetch(`http://127.0.0.1:${warren.port}${path}`, {
      ...{ method, headers: { ...bearer, ...json, ...headers } },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await answer.text()
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : {}, headers: answer.headers }
  }
  /** As the page does it, with the browser's cookie. */
  const asPerson = (method: string, path: string, body?: object, cookie = signIn) =>
    fetch(`http://127.0.0.1:${warren.port}${path}`, {
      ...{ method, headers: { cookie, origin: `http://localhost:${warren.port}`, ...json } },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const token = async (more: object = {}): Promise<string> =>
    (await api("POST", `/v1/sessions/${session}/gateway-token`, more)).body.token
  const bearer = async (): Promise<{ authorization: string }> => ({ authorization: `Bearer ${await token()}` })
  /** What the program inside saw of a request. */
  const seen = async (path: string, asked: Ask = {}) => {
    const headers = { ...(await bearer()), ...asked.headers }
    const { body } = await door.get(`/s/${session}/t/${inside}${path}`, { ...asked, headers })
    return JSON.parse(body.toString()) as { method: string; url: string; headers: string[]; body: string }
  }
  /** A browser that is let in at the preview's own name. */
  const browser = async (given?: string, target: string | number = inside) => {
    const host = ownHost(session, target, door.port)
    const { headers } = await door.get(`/?token=${given ?? (await token())}`, { host })
    return { host, origin: `http://${host}`, cookie: headers["set-cookie"]?.[0]?.split(";")[0] ?? "" }
  }
  const until = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
    while (!(await holds())) await new Promise((done) => setTimeout(done, 25))
  }

  beforeAll(async () => {
    warren = await Warren.start()
    door = new Door(warren.port)
    await until(() => /\/join#(\S+)/.test(warren.said))
    const [, code] = /\/join#(\S+)/.exec(warren.said) ?? []
    const came = await fetch(`http://localhost:${warren.port}/v1/invites/redeem`, {
      method: "POST",
      headers: json,
      body: JSON.stringify({ code, password: "correct horse battery" }),
    })
    signIn = came.headers.getSetCookie()[0]?.split(";")[0] ?? ""
    session = (await api("POST", "/v1/sessions", { network: { mode: "none" } })).body.id
    await fetch(`http://127.0.0.1:${warren.port}/v1/sessions/${session}/files/content?path=/tmp/server.cjs`, {
      method: "PUT",
      headers: { authorization: `Bearer ${await warren.token()}` },
      body: server,
    })
    await api("POST", `/v1/sessions/${session}/processes`, { argv: ["node", "/tmp/server.cjs", String(inside)] })
    const cmd = `until bash -c '< /dev/tcp/127.0.0.1/${inside}' 2>/dev/null; do sleep 0.02; done`
    await api("POST", `/v1/sessions/${session}/exec`, { cmd })
  }, 180_000)
  afterAll(() => warren?.[Symbol.asyncDispose](), 60_000)

  it("is reached by path and by a name of its own, and says where the client and the browser are", async () => {
    const asked = await seen("/hello?x=1", { method: "POST", body: "some words" })
    expect(asked).toMatchObject({ method: "POST", url: "/hello?x=1", body: "some words" })
    const told = new Map(
      asked.headers.flatMap((name, at) => (at % 2 ? [] : [[name.toLowerCase(), asked.headers[at + 1]]])),
    )
    expect(told.get("x-forwarded-for")).toBe("127.0.0.1")
    expect(told.get("x-forwarded-proto")).toBe("http")
    expect(told.get("x-forwarded-host")).toBe(`localhost:${door.port}`)
    expect(asked.headers.join(" ")).not.toMatch(/x-warren|bearer/i)
    const { host, cookie } = await browser()
    const { status, body, headers } = await door.get("/own?y=2", { host, headers: { cookie } })
    expect([status, JSON.parse(body.toString()).url]).toEqual([200, "/own?y=2"])
    expect(Object.keys(headers).filter((name) => name.startsWith("x-warren"))).toEqual([])
    // A person who comes by path is led to the name, and let in there.
    const led = await door.get(`/s/${session}/t/${inside}/x?token=${await token()}`, {
      headers: { "sec-fetch-mode": "navigate" },
    })
    expect(led.status).toBe(303)
    expect(led.headers.location).toContain(`http://${ownHost(session, inside, door.port)}/x?token=tkt_`)
    const { pathname, search } = new URL(led.headers.location ?? "")
    expect((await door.get(`${pathname}${search}`, { host })).status).toBe(303)
  })

  it("what a client says about who it is, or where it comes from, is not believed", async () => {
    const headers = {
      "X-Warren-Client": "6.6.6.6",
      "x-warren-scheme": "https",
      X_Warren_User: "root",
      "X-Warren-Refused": "x",
      "X-Forwarded-For": "6.6.6.6",
      Connection: "close, X-Warren-Scheme, Host, Cookie",
    }
    const asked = await seen("/h", { headers })
    expect(asked.headers.join(" ")).not.toMatch(/6\.6\.6\.6|x.warren|https/i)
    // Nor does the answer's.
    const { headers: answered } = await door.get(`/s/${session}/t/${inside}/headers`, { headers: await bearer() })
    expect(answered["x-warren-woke-ms"]).toBeUndefined()
  })

  it("bodies pass both ways byte for byte, and as fast as they are read", async () => {
    const bytes = randomBytes(30 * 1024 * 1024)
    const up = await door.get(`/s/${session}/t/${inside}/upload`, {
      method: "POST",
      headers: await bearer(),
      body: bytes,
    })
    const sha256 = createHash("sha256").update(bytes).digest("hex")
    expect(JSON.parse(up.body.toString())).toEqual({ bytes: bytes.length, sha256 })
    const waiting = door.open(`/s/${session}/t/${inside}/upload`, {
      method: "POST",
      headers: { ...(await bearer()), "transfer-encoding": "chunked", expect: "100-continue" },
    })
    waiting.flushHeaders()
    await once(waiting, "continue")
    waiting.write("one, ")
    waiting.end("two")
    const [took] = (await once(waiting, "response")) as [IncomingMessage]
    expect(JSON.parse(String((await once(took, "data"))[0]))).toMatchObject({ bytes: "one, two".length })
    const size = 400 * 1024 * 1024
    const slow = door.open(`/s/${session}/t/${inside}/download?bytes=${size}`, { headers: await bearer() })
    slow.end()
    const [answer] = (await once(slow, "response")) as [IncomingMessage]
    answer.pause()
    const sent = async (): Promise<number> =>
      JSON.parse((await door.get(`/s/${session}/t/${inside}/seen`, { headers: await bearer() })).body.toString())
        .sent ?? 0
    let last = -1
    // What nobody reads is not sent: it stands still long before the end.
    await until(async () => {
      const now = await sent()
      const stands = now === last
      last = now
      await new Promise((done) => setTimeout(done, 200))
      return stands && now > 0
    })
    expect(last).toBeLessThan(size / 4)
    slow.destroy()
    const trailers = await door.get(`/s/${session}/t/${inside}/trailers`, {
      headers: { ...(await bearer()), te: "trailers" },
    })
    expect(trailers.trailers).toEqual({ "x-sum": "42" })
  })

  it("events come as they are made, and a client that leaves is gone inside", async () => {
    const gone = async (): Promise<number> =>
      JSON.parse((await door.get(`/s/${session}/t/${inside}/seen`, { headers: await bearer() })).body.toString()).gone
    const before = await gone()
    const feed = door.open(`/s/${session}/t/${inside}/events`, { headers: await bearer() })
    feed.end()
    const [answer] = (await once(feed, "response")) as [IncomingMessage]
    let text = ""
    answer.on("data", (data: Buffer) => (text += data.toString()))
    await until(() => text.includes("first"))
    await door.get(`/s/${session}/t/${inside}/event`, { headers: await bearer() })
    await until(() => text.includes("next"))
    feed.destroy()
    await until(async () => (await gone()) > before)
  })

  it("WebSockets pass with their subprotocol, from the preview's own pages", async () => {
    const { cookie, origin, host } = await browser()
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/echo`, ["chat"], { headers: { host, cookie, origin } })
    await once(socket, "open")
    expect(socket.protocol).toBe("chat")
    socket.terminate()
    for (const foreign of ["http://evil.example", "null", `http://localhost:${door.port}`]) {
      const { head, socket: refused } = await door.upgrade("/echo", { host, headers: { cookie, origin: foreign } })
      refused.destroy()
      expect(head).toMatch(/^HTTP\/1.1 403/)
    }
  })

  it("the terminal, the desktop and the editor are there for who may run programs", async () => {
    const origin = `http://localhost:${door.port}`
    const url = `ws://127.0.0.1:${door.port}/s/${session}/ttyd/ws?token=${await token()}`
    const host = `localhost:${door.port}`
    const socket = new WebSocket(url, ["tty"], { headers: { host, origin } })
    let text = ""
    socket.on("message", (data: Buffer) => (text += data.toString()))
    await once(socket, "open")
    socket.send('{"columns":80,"rows":24}')
    socket.send("0echo through-$((6 * 7))\r")
    await until(() => text.includes("through-42"))
    socket.terminate()
    const portOnly = await token({ port: inside })
    const { head, socket: other } = await door.upgrade(`/s/${session}/ttyd/ws?token=${portOnly}`, {
      headers: { origin },
    })
    other.destroy()
    expect(head).toMatch(/^HTTP\/1.1 403/)
  })

  it("what is open is cut, and what was let in is let in no more, when its sign-in or its token ends", async () => {
    const scopes = ["ports", "exec", "sessions:read"]
    const made = (await (await asPerson("POST", "/v1/tokens", { scopes })).json()) as Made
    const asToken = { authorization: `Bearer ${made.token}` }
    const ways = [
      {
        token: async () => String((await api("POST", `/v1/sessions/${session}/gateway-token`, {}, asToken)).body.token),
        end: () => asPerson("DELETE", `/v1/tokens/${made.about.id}`),
      },
      {
        token: async () =>
          ((await (await asPerson("POST", `/v1/sessions/${session}/gateway-token`, {})).json()) as { token: string })
            .token,
        end: () => asPerson("POST", "/v1/login/out", {}),
      },
    ]
    for (const { token: another, end } of ways) {
      const [given, unused] = [await another(), await another()]
      const { cookie, host, origin } = await browser(given)
      expect((await door.get("/", { host, headers: { cookie } })).status).toBe(200)
      const socket = new WebSocket(`ws://127.0.0.1:${door.port}/echo`, { headers: { host, cookie, origin } })
      await once(socket, "open")
      socket.on("error", () => undefined)
      const feed = door.open("/events", { host, headers: { cookie } })
      feed.on("error", () => undefined).end()
      const [answer] = (await once(feed, "response")) as [IncomingMessage]
      answer.on("error", () => undefined).resume()
      const closed = [socket, answer].map((one) => new Promise((done) => one.once("close", done)))
      expect((await end()).ok).toBe(true)
      await Promise.all(closed)
      expect((await door.get("/", { host, headers: { cookie } })).status).toBe(401)
      expect(
        (await door.get(`/s/${session}/t/${inside}/`, { headers: { authorization: `Bearer ${given}` } })).status,
      ).toBe(401)
      // One that nobody has used yet, beside something else that could be taken for what counts.
      const app = { authorization: "Bearer of-the-app" }
      const path = `/s/${session}/t/${inside}/?token=`
      expect((await door.get(`${path}${unused}`, { headers: app })).status).toBe(401)
      expect((await door.get(`${path}of-the-app&token=${unused}`)).status).toBe(401)
      const { head, socket: refused } = await door.upgrade(`${path}${unused}`, { headers: { ...app, origin } })
      refused.destroy()
      expect(head).toMatch(/^HTTP\/1.1 401/)
    }
  })

  it("the page is at the domain of its previews, too; a preview's name has no API, and the API no preview's pages", async () => {
    expect((await door.get("/health", { host: `warren.localhost:${door.port}` })).status).toBe(200)
    const { host, cookie } = await browser()
    const answer = await door.get("/v1/sessions", {
      host,
      headers: { cookie, authorization: `Bearer ${await warren.token()}` },
    })
    // The program's own path: it is not Warren who answers, and its token went to nobody who was not given it.
    expect(JSON.parse(answer.body.toString())).toMatchObject({ url: "/v1/sessions" })
    for (const wrong of [
      "evil.example",
      "xwarren.localhost",
      "warren.localhost.evil.example",
      "3000.warren.localhost",
    ]) {
      const { status } = await door.get(`/s/${session}/t/${inside}/`, { host: wrong, headers: await bearer() })
      expect([wrong, status >= 400 && status < 500]).toEqual([wrong, true])
    }
  })

  it("every refusal is in the audit log, with where it came from and what it was for", async () => {
    const attempts: [string, Ask][] = [
      [`/s/${session}/t/${inside}/`, {}],
      [`/s/${session}/t/${inside}/../../x`, {}],
      [`/s/${session}/t/${inside}/`, { headers: { authorization: "Bearer lnk_nonsense" } }],
      [`/`, { host: ownHost(session, inside, door.port), headers: { cookie: "gateway_session=made-up" } }],
      [`/s/ses_00000000000000000000/t/${inside}/`, {}],
      ["/api/tunnels", {}],
    ]
    for (const [at, [path, asked]] of attempts.entries()) {
      const from = `127.0.9.${at + 1}`
      const { status } = await door.get(path, { ...asked, from })
      expect([400, 401, 403, 404]).toContain(status)
      await until(async () => {
        const { body } = await api("GET", "/v1/audit?limit=200")
        const items = body.items as { address: string; action: string; result: string }[]
        return items.some((one) => one.address === from && one.action === "gateway.request" && one.result !== "ok")
      })
    }
  })
})
