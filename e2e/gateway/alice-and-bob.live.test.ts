import { createHmac, createPrivateKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { gatewayOf, signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { ManyUsers, until } from "../users/machine.ts"
import { Door, ownHost, type Ask } from "./door.ts"

const inside = 8000
/** For an entry to be written down. */
const auditMs = 20_000
const secret = "of alice alone"
const program = `
  const { createServer } = require("node:http")
  const { createHash } = require("node:crypto")
  const server = createServer((q, a) => a.end(process.argv[1] + " " + q.url))
  server.on("upgrade", (q, s) => {
    const accept = createHash("sha1").update(q.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64")
    s.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n")
    s.on("error", () => s.destroy()).pipe(s)
  })
  server.listen(${inside}, "127.0.0.1")`

interface Person {
  readonly name: string
  readonly token: string
  session: string
}

const text = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")

describe.skipIf(process.getuid?.() !== 0)("alice's previews, from bob and from strangers", { timeout: 240_000 }, () => {
  let machine: ManyUsers
  let door: Door
  let alice: Person
  let bob: Person
  let key: KeyObject
  let attempt = 0
  const forged = generateKeyPairSync("ed25519").privateKey

  const gatewayToken = async ({ token, session }: Person, more: object = {}): Promise<string> =>
    String((await machine.ask(`/v1/sessions/${session}/gateway-token`, { token, body: more })).body["token"])
  /** A token with any claims, signed with any key. */
  const signed = (by: KeyObject, changes: object = {}): string => {
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      sub: alice.name,
      sid: alice.session,
      aud: gatewayOf(alice.name),
      jti: "jti_x",
      iat: now,
      exp: now + 60,
    }
    const body = `${text({ alg: "EdDSA", typ: "warren-gateway+jwt" })}.${text({ ...claims, ...changes })}`
    return `${body}.${sign(null, Buffer.from(body), by).toString("base64url")}`
  }
  /** An address of its own for each attempt: the log does not take more than a few of one kind from one place. */
  const from = (): string => `127.7.${Math.floor(++attempt / 250)}.${(attempt % 250) + 1}`
  /** Where refusals came from, as the log says, and how far it was read: reading it is in it, too. */
  const written = new Set<string>()
  let readTo = 0
  const audited = async (address: string): Promise<void> => {
    const token = await machine.rootToken()
    const patience = AbortSignal.timeout(auditMs)
    await until(async () => {
      const { body } = await machine.ask(`/v1/audit?limit=500&after=${readTo}`, { token })
      for (const one of body["items"] as { seq: number; address: string; result: string }[]) {
        readTo = one.seq
        if (one.result !== "ok") written.add(one.address)
      }
      if (patience.aborted) throw new Error(`nothing is written down from ${address}`)
      return written.has(address)
    })
  }
  const refused = async (what: string, path: string, asked: Ask = {}): Promise<void> => {
    const address = from()
    const { status, body } = await door.get(path, { ...asked, from: address })
    expect([what, status >= 400 && status < 500, body.includes(secret)]).toEqual([what, true, false])
    await audited(address)
  }
  const socketRefused = async (what: string, path: string, asked: Ask): Promise<void> => {
    const address = from()
    const { head, socket } = await door.upgrade(path, { ...asked, from: address })
    socket.destroy()
    expect([what, head.split("\r\n")[0]]).toEqual([what, expect.stringMatching(/^HTTP\/1.1 4\d\d/)])
    await audited(address)
  }
  const byPath = (session: string, rest = "/"): string => `/s/${session}/t/${inside}${rest}`
  const cookieOf = async (person: Person) => {
    const host = ownHost(person.session, inside, door.port)
    const { headers } = await door.get(`/?token=${await gatewayToken(person)}`, { host })
    return { host, cookie: headers["set-cookie"]?.[0]?.split(";")[0] ?? "" }
  }

  beforeAll(async () => {
    machine = await ManyUsers.open()
    door = new Door(machine.port)
    const people: Person[] = []
    for (const who of ["alice", "bob"]) {
      const name = machine.name(who)
      const made = await machine.cli.run(["user", "create", name])
      expect(made.stderr, made.stderr).toBe("")
      const token = await machine.tokenOf(name)
      const { body } = await machine.ask("/v1/sessions", { token, body: { network: { mode: "none" } } })
      const session = String(body["id"])
      const argv = ["node", "-e", program, who === "alice" ? secret : "of bob"]
      await machine.ask(`/v1/sessions/${session}/processes`, { token, body: { argv } })
      const cmd = `until bash -c '< /dev/tcp/127.0.0.1/${inside}' 2>/dev/null; do sleep 0.02; done`
      await machine.ask(`/v1/sessions/${session}/exec`, { token, body: { cmd } })
      people.push({ name, token, session })
    }
    ;[alice, bob] = people as [Person, Person]
    key = createPrivateKey(readFileSync(machine.at("machine", "control", "statement.key")))
  }, 240_000)
  afterAll(() => machine?.[Symbol.asyncDispose](), 120_000)

  it("each reaches their own, by path and by name, each through their own runner", async () => {
    for (const [person, said] of [
      [alice, secret],
      [bob, "of bob"],
    ] as const) {
      const headers = { authorization: `Bearer ${await gatewayToken(person)}` }
      expect((await door.get(byPath(person.session, "/x"), { headers })).body.toString()).toBe(`${said} /x`)
      const { host, cookie } = await cookieOf(person)
      expect((await door.get("/y", { host, headers: { cookie } })).body.toString()).toBe(`${said} /y`)
    }
  })

  it("tokens that are none of hers open nothing, however they are made", async () => {
    const now = Math.floor(Date.now() / 1000)
    const none = text({ alg: "none", typ: "JWT" })
    const claims = text({ sub: alice.name, sid: alice.session, aud: gatewayOf(alice.name), iat: now, exp: now + 60 })
    const publicPem = readFileSync(machine.at("machine", "control", "statement.pub"))
    const hmac = `${text({ alg: "HS256", typ: "JWT" })}.${claims}`
    const [head, payload, signature] = signed(key).split(".")
    const tokens: Record<string, string> = {
      "alg none": `${none}.${claims}.`,
      "alg none with our type": `${text({ alg: "none", typ: "warren-gateway+jwt" })}.${claims}.`,
      "the public key as a shared secret": `${hmac}.${createHmac("sha256", publicPem).update(hmac).digest("base64url")}`,
      "signed by somebody else": signed(forged),
      "without its signature": `${head}.${payload}.`,
      "with another's claims under its signature": `${head}.${text({ sub: bob.name })}.${signature}`,
      expired: signed(key, { iat: now - 700, exp: now - 100 }),
      "of tomorrow": signed(key, { iat: now + 86_400, exp: now + 86_460 }),
      "for a year": signed(key, { exp: now + 365 * 86_400 }),
      "for bob's gateway": signed(key, { aud: gatewayOf(bob.name) }),
      "bob's, for her session": signed(key, { sub: bob.name, aud: gatewayOf(bob.name) }),
      "hers, for another session": signed(key, { sid: bob.session }),
      "bob's own": await gatewayToken(bob),
      "bob's own, for a port": await gatewayToken(bob, { port: inside }),
      "for another port of hers": signGatewayToken(key, {
        user: alice.name,
        session: alice.session,
        port: 1,
        lifeS: 60,
        now: Date.now(),
      }),
      "with a sign-in that never was": signed(key, { via: "sin_00000000000000000000" }),
      "with a token of bob's behind it": signed(key, {
        via: (await machine.ask("/v1/account", { token: bob.token })).body["id"] ?? "tok_x",
      }),
      "bob's token for the API": bob.token,
    }
    for (const [what, token] of Object.entries(tokens)) {
      await refused(`${what}, by header`, byPath(alice.session), { headers: { authorization: `Bearer ${token}` } })
      await refused(`${what}, in the URL`, `${byPath(alice.session)}?token=${token}`)
      await refused(`${what}, at her name`, `/?token=${token}`, { host: ownHost(alice.session, inside, door.port) })
    }
    expect(
      (await machine.ask(`/v1/sessions/${alice.session}/gateway-token`, { token: bob.token, body: {} })).status,
    ).toBe(404)
    const spent = await gatewayToken(alice)
    expect((await door.get(`${byPath(alice.session)}?token=${spent}`)).status).toBe(303)
    await refused("one that was used", `${byPath(alice.session)}?token=${spent}`)
  })

  it("cookies of bob's, and made-up ones, open nothing of hers", async () => {
    const [his, hers] = [await cookieOf(bob), await cookieOf(alice)]
    const random = "A".repeat(43)
    const cookies: Record<string, string> = {
      "bob's": his.cookie,
      "made up": `gateway_session=${random}`,
      "made up, with a sign-in": `gateway_session=${random}.sin_00000000000000000000`,
      "hers with another sign-in behind it": hers.cookie.replace(/\.\w+$/, ".sin_00000000000000000000"),
      many: Array.from({ length: 50 }, (_, at) => `gateway_session=${random}${at}`).join("; "),
    }
    for (const [what, cookie] of Object.entries(cookies)) {
      await refused(`${what}, at her name`, "/", { host: hers.host, headers: { cookie } })
      await refused(`${what}, by path`, byPath(alice.session), { headers: { cookie } })
    }
    // A cookie beside hers is worth nothing, and takes nothing away.
    const both = `${his.cookie}; ${hers.cookie}; gateway_session=${random}`
    expect((await door.get("/", { host: hers.host, headers: { cookie: both } })).body.toString()).toContain(secret)
  })

  it("paths and hosts that could be read in two ways are not read at all", async () => {
    const headers = { authorization: `Bearer ${await gatewayToken(bob)}` }
    const [hers, his] = [`/s/${alice.session}/t/${inside}`, `/s/${bob.session}/t/${inside}`]
    const paths = [
      `${his}/../../../${alice.session}/t/${inside}/`,
      `${his}/..%2f..%2f..%2f${alice.session}/t/${inside}/`,
      `${his}/%2e%2e/%2e%2e/%2e%2e/${alice.session}/t/${inside}/`,
      `${his}/..;/..;/..;/${alice.session}/t/${inside}/`,
      `${his}/..\\..\\..\\${alice.session}\\t\\${inside}\\`,
      `/s/${bob.session}%2f..%2f${alice.session}/t/${inside}/`,
      `/s//${alice.session}//t//${inside}//`,
      `//s/${alice.session}/t/${inside}/`,
      `http://localhost:${door.port}${hers}/`,
      `http://${ownHost(alice.session, inside, door.port)}/s/${bob.session}/t/${inside}/`,
      `${hers}/%00`,
      `${hers}/?token=${await gatewayToken(bob)}&token=${await gatewayToken(bob)}`,
    ]
    for (const path of paths) await refused(path, path, { headers })
    const hosts = [
      `${ownHost(alice.session, inside, door.port)}.`,
      `${inside}-${alice.session.slice(4)}.warren.localhost.evil.example`,
      `${inside}-${alice.session.slice(4)}%2ewarren.localhost`,
      `x.${ownHost(alice.session, inside, door.port)}`,
      "127.0.0.2",
    ]
    for (const host of hosts) await refused(host, byPath(alice.session), { host, headers })
  })

  it("smuggled requests and headers reach nobody", async () => {
    const token = await gatewayToken(bob)
    const his = `GET ${byPath(bob.session)} HTTP/1.1\r\nHost: localhost:${door.port}\r\nAuthorization: Bearer ${token}\r\n`
    const hers = `GET ${byPath(alice.session)} HTTP/1.1\r\nHost: localhost:${door.port}\r\n\r\n`
    const raw: Record<string, string> = {
      "a length and chunks": `${his.replace("GET", "POST")}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hers}`,
      "two lengths": `${his.replace("GET", "POST")}Content-Length: 0\r\nContent-Length: 50\r\n\r\n${hers}`,
      "chunks misspelt": `${his.replace("GET", "POST")}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hers}`,
      "a folded line": `${his}X-A: b\r\n Host: x\r\n\r\n`,
      "two hosts": `${his}Host: ${ownHost(alice.session, inside, door.port)}\r\n\r\n`,
      "a space before the colon": `${his}Content-Length : 5\r\n\r\nhello`,
      "a bare line end": `${his}X-A: b\nHost: x\r\n\r\n`,
      "no host": `GET ${byPath(alice.session)} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    }
    for (const [what, request] of Object.entries(raw)) {
      const address = from()
      const answer = await door.say(request, address)
      expect([what, answer.includes(secret), /^HTTP\/1.1 4/.test(answer)]).toEqual([what, false, true])
      await audited(address)
    }
    const headers = {
      authorization: `Bearer ${token}`,
      "x-warren-user": alice.name,
      "x-warren-client": "10.0.0.1",
      "x-forwarded-host": ownHost(alice.session, inside, door.port),
      "x-original-url": byPath(alice.session),
      "x-rewrite-url": byPath(alice.session),
    }
    const own = await door.get(byPath(bob.session), { headers })
    expect(own.body.toString()).toBe("of bob /")
    await refused("her path with headers that lie", byPath(alice.session), { headers })
  })

  it("WebSockets from pages that are not the preview's own are not opened, with her cookie or his token", async () => {
    const { host, cookie } = await cookieOf(alice)
    const good = new WebSocket(`ws://127.0.0.1:${door.port}/ws`, {
      headers: { host, cookie, origin: `http://${host}` },
    })
    await once(good, "open")
    good.terminate()
    const origins = [
      "http://evil.example",
      "null",
      `http://localhost:${door.port}`,
      `https://${host}`,
      `http://${ownHost(bob.session, inside, door.port)}`,
      `http://warren.localhost:${door.port}`,
    ]
    for (const origin of origins) await socketRefused(origin, "/ws", { host, headers: { cookie, origin } })
    await socketRefused("no origin", "/ws", { host, headers: { cookie } })
    await socketRefused("bob's token", byPath(alice.session), {
      headers: { authorization: `Bearer ${await gatewayToken(bob)}` },
    })
    for (const own of ["ttyd", "vnc", "vscode"]) {
      const path = `/s/${alice.session}/${own}/ws?token=${await gatewayToken(bob)}`
      await socketRefused(`her ${own}`, path, { headers: { origin: `http://localhost:${door.port}` } })
    }
    // A change, and a picture of it, from another page with her cookie.
    const foreign = { cookie, origin: "http://evil.example", "sec-fetch-site": "cross-site" }
    await refused("a change from elsewhere", "/", { host, method: "POST", headers: foreign })
    await refused("a picture from elsewhere", "/", {
      host,
      headers: { cookie, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" },
    })
  })

  it("a public tunnel is open to strangers and to nobody's API; without it the same name is closed", async () => {
    const body = { name: "shown", port: inside, visibility: "public" }
    expect((await machine.ask(`/v1/sessions/${alice.session}/tunnels`, { token: alice.token, body })).status).toBe(200)
    const host = ownHost(alice.session, "shown", door.port)
    expect((await door.get("/", { host })).body.toString()).toContain(secret)
    await refused("its port", "/", { host: ownHost(alice.session, inside, door.port) })
    await refused("her list of tunnels", "/api/tunnels", { headers: { authorization: `Bearer ${bob.token}` } })
    expect(
      (await machine.ask(`/v1/sessions/${alice.session}/tunnels/shown`, { token: bob.token, method: "DELETE" })).status,
    ).toBe(404)
    expect(
      (await machine.ask(`/v1/sessions/${alice.session}/tunnels/shown`, { token: alice.token, method: "DELETE" }))
        .status,
    ).toBe(200)
    await refused("after it was taken away", "/", { host })
  })

  it("disabled: what alice has open is cut, and nobody gets in, by link or by cookie", async () => {
    const { host, cookie } = await cookieOf(alice)
    const body = { name: "still", port: inside, visibility: "public" }
    await machine.ask(`/v1/sessions/${alice.session}/tunnels`, { token: alice.token, body })
    const socket = new WebSocket(`ws://127.0.0.1:${door.port}/ws`, {
      headers: { host, cookie, origin: `http://${host}` },
    })
    const open = new WebSocket(`ws://127.0.0.1:${door.port}/ws`, {
      headers: { host: ownHost(alice.session, "still", door.port) },
    })
    await Promise.all([once(socket, "open"), once(open, "open")])
    const closed = [socket, open].map(
      (one) => new Promise((done) => one.on("error", () => undefined).once("close", done)),
    )
    const token = await machine.rootToken()
    const patched = await machine.ask(`/v1/users/${alice.name}`, { token, method: "PATCH", body: { isDisabled: true } })
    expect(patched.status).toBe(200)
    await Promise.all(closed)
    await refused("her cookie", "/", { host, headers: { cookie } })
    await refused("her public tunnel", "/", { host: ownHost(alice.session, "still", door.port) })
    expect(
      (await door.get(byPath(bob.session), { headers: { authorization: `Bearer ${await gatewayToken(bob)}` } })).status,
    ).toBe(200)
  })
})
