import { execFile } from "node:child_process"
import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { connect as connectTls, createServer as createTls, type TLSSocket } from "node:tls"
import { promisify } from "node:util"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { describe, expect, test } from "vitest"
import { certificateFor } from "./testing/certificate.ts"
import { EgressSystem, heard, Loopback, reachable } from "./testing/egress-system.ts"

const run = promisify(execFile)
const connectTo = (host: string, port: number): string =>
  `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`

/** A connection on which the proxy has said yes. */
async function tunnelTo(system: EgressSystem, host: string, port: number): Promise<Socket> {
  const socket = await system.connect()
  socket.allowHalfOpen = true
  socket.write(connectTo(host, port))
  const [answer] = (await once(socket, "data")) as [Buffer]
  expect(answer.toString()).toBe("HTTP/1.1 200 Connection established\r\n\r\n")
  return socket
}

/** What TLS in a tunnel says: the server's word, or the reason there is none. */
async function greet(system: EgressSystem, port: number, servername: string): Promise<string> {
  const tls: TLSSocket = connectTls({
    socket: await tunnelTo(system, "allowed.test", port),
    servername,
    rejectUnauthorized: false,
  })
  return await new Promise((resolve) => {
    tls.once("data", (chunk: Buffer) => {
      resolve(chunk.toString())
      tls.destroy()
    })
    tls.once("error", (error) => resolve(error.message))
    tls.once("close", () => resolve("closed"))
  })
}

describe("tunnels", () => {
  test("TLS passes with the name that was asked for, and no other", async () => {
    await using folder = await TempFolder.make()
    const { key, cert, certFile } = certificateFor("allowed.test", folder)
    let greetings = 0
    await using server = await Loopback.of(
      createTls({ key, cert }, (socket) => {
        greetings++
        socket.on("error", () => undefined).end("HTTP/1.0 200 OK\r\n\r\nsecret word")
      }),
    )
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    expect(await greet(system, server.port, "allowed.test")).toContain("secret word")
    expect(await greet(system, server.port, "ALLOWED.test")).toContain("secret word")
    expect(greetings).toBe(2)
    expect(await greet(system, server.port, "evil.test")).toMatch(/unrecognized name/i)
    expect(await greet(system, server.port, "")).toMatch(/closed|disconnected/)
    await eventually(() => system.proxy.counters().open === 0)
    expect(system.refused).toEqual([
      `sni-missing allowed.test ${server.port}`,
      `sni-mismatch allowed.test ${server.port}`,
    ])
    expect(greetings).toBe(2)
    const port = await system.forwarder()
    for (const proxy of ["http", "socks5h"]) {
      const url = `https://allowed.test:${server.port}/`
      const { stdout } = await run("curl", [
        "-sS",
        "--http0.9",
        "--cacert",
        certFile,
        "-x",
        `${proxy}://127.0.0.1:${port}`,
        url,
      ])
      expect(stdout).toContain("secret word")
    }
  })

  test("other hosts, ports and shapes are refused", async () => {
    await using server = await Loopback.tcp((socket) => socket.end("x"))
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const cases: [string, string][] = [
      [connectTo("allowed.test", 22), "port allowed.test 22"],
      [connectTo("allowed.test", 25), "port allowed.test 25"],
      [connectTo("evil.test", 443), "not-listed evil.test 443"],
      [connectTo("127.0.0.1", 443), "plain-address 127.0.0.1 443"],
      [connectTo("[::1]", 443), "plain-address ::1 443"],
      [connectTo("[64:ff9b::7f00:1]", 443), "plain-address 64:ff9b::7f00:1 443"],
      [connectTo("0x7f000001", 443), "bad-host 0x7f000001 0"],
      [connectTo("a:3000@evil.test", 443), "bad-host a:3000@evil.test:443 0"],
      ["CONNECT allowed.test HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "bad-host allowed.test 0"],
      [
        `CONNECT allowed.test:${server.port} HTTP/1.1\r\nHost: evil.test\r\n\r\n`,
        `host-mismatch allowed.test ${server.port}`,
      ],
    ]
    for (const [request, denial] of cases) {
      expect(await system.say(request), request).toMatch(/^HTTP\/1.1 4/)
      expect(system.refused[0], request).toBe(denial)
    }
    expect(server.accepted).toBe(0)
  })

  test("HTTP in a tunnel is looked at request by request", async () => {
    await using server = await Loopback.http((request, response) => void response.end(`hello ${request.url}`))
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const host = `allowed.test:${server.port}`
    const answer = await system.say(
      `${connectTo("allowed.test", server.port)}GET /one HTTP/1.1\r\nHost: ${host}\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.test\r\n\r\n`,
    )
    expect(answer).toMatch(/hello \/one.*403 Forbidden.*host-mismatch/s)
    expect(answer).not.toContain("/two HTTP")
    expect(await system.say(`${connectTo("allowed.test", server.port)}${connectTo("evil.test", 443)}`)).toContain(
      "400 Bad",
    )
    expect(await system.say(`${connectTo("allowed.test", server.port)}SSH-2.0-x\r\n`)).toContain("400 Bad")
    const within = (url: string): Promise<string> =>
      system.say(
        `${connectTo("allowed.test", server.port)}GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      )
    expect(await within(`http://${host}/three`)).toContain("hello /three")
    expect(await within("http://evil.test/")).toContain("host-mismatch")
    for (const url of ["https://evil.test/", "/a#b", "*"]) expect(await within(url), url).toContain("400 Bad")
    expect(await system.say(`${connectTo("allowed.test", server.port)}\x00nonsense`)).toMatch(/established\r\n\r\n$/)
    expect(system.refused[0]).toBe(`unknown-protocol allowed.test ${server.port}`)
    await eventually(() => system.proxy.counters().open === 0)
  })

  test.skipIf(process.getuid?.() !== 0)("to the port of TLS nothing else goes", async () => {
    const server = createServer((socket) =>
      socket.on("error", () => undefined).end("HTTP/1.1 200 OK\r\n\r\nin the clear"),
    )
    await once(server.listen(443, "127.0.0.77"), "listening")
    try {
      await using system = await EgressSystem.start({
        policy: { mode: "list", allow: ["allowed.test"], allowPrivate: ["127.0.0.77:443"] },
        names: { "allowed.test": ["127.0.0.77"] },
      })
      const request = "GET / HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n"
      expect(await system.say(`${connectTo("allowed.test", 443)}${request}`)).toMatch(/established\r\n\r\n$/)
      expect(system.refused).toEqual(["unknown-protocol allowed.test 443"])
    } finally {
      server.close()
    }
  })

  test("plain TCP passes where it is listed as such, whoever speaks first, half-closed either way", async () => {
    await using server = await Loopback.tcp((socket) => {
      socket.write("banner ")
      let text = ""
      socket.on("data", (chunk: Buffer) => (text += chunk.toString()))
      // Answers only after the client has said its last.
      socket.on("end", () => socket.end(`got ${text}`))
    })
    await using system = await EgressSystem.start({
      policy: {
        mode: "list",
        allow: [`tcp://allowed.test:${server.port}`],
        allowPrivate: [`127.0.0.1:${server.port}`],
      },
      names: { "allowed.test": ["127.0.0.1"] },
    })
    const socket = await system.connect()
    socket.allowHalfOpen = true
    const answer = heard(socket)
    socket.end(`${connectTo("allowed.test", server.port)}last words`)
    expect(await answer).toMatch(/established\r\n\r\nbanner got last words$/)
    expect(system.proxy.degraded()).toHaveLength(2)
    await using speaker = await Loopback.tcp((socket) => {
      socket.end("all I have to say")
      socket.on("data", (chunk: Buffer) => (late += chunk.toString()))
    })
    let late = ""
    system.proxy.replacePolicy({
      mode: "list",
      allow: [`tcp://allowed.test:${speaker.port}`],
      allowPrivate: [`127.0.0.1:${speaker.port}`],
    })
    const listener = await system.connect()
    listener.allowHalfOpen = true
    listener.write(connectTo("allowed.test", speaker.port))
    expect(await heard(listener)).toMatch(/all I have to say$/)
    listener.end("still talking")
    await eventually(() => late === "still talking")
  })

  test("one that breaks takes the other with it", async () => {
    await using server = await Loopback.tcp(
      (socket) => void socket.once("data", () => socket.resetAndDestroy()).once("end", () => socket.end()),
    )
    await using system = await EgressSystem.start({
      policy: {
        mode: "list",
        allow: [`tcp://allowed.test:${server.port}`],
        allowPrivate: [`127.0.0.1:${server.port}`],
      },
      names: { "allowed.test": ["127.0.0.1"] },
    })
    const socket = await tunnelTo(system, "allowed.test", server.port)
    socket.write("x")
    await heard(socket)
    const other = await tunnelTo(system, "allowed.test", server.port)
    other.destroy()
    await eventually(() => server.open === 0 && system.proxy.counters().connections === 0)
  })

  test("a new policy cuts what it forbids, and nothing else", async () => {
    await using server = await Loopback.tcp((socket) => void socket.pipe(socket))
    const [one, two] = ["one.test", "two.test"].map((name) => `tcp://${name}:${server.port}`) as [string, string]
    const allowPrivate = [`127.0.0.1:${server.port}`]
    await using system = await EgressSystem.start({
      policy: { mode: "list", allow: [one, two], allowPrivate },
      names: { "one.test": ["127.0.0.1"], "two.test": ["127.0.0.1"] },
    })
    const first = await tunnelTo(system, "one.test", server.port)
    const second = await tunnelTo(system, "two.test", server.port)
    const firstEnd = heard(first)
    expect(system.proxy.replacePolicy({ mode: "list", allow: [two], allowPrivate })).toBe(1)
    await firstEnd
    second.write("still here")
    const [echo] = (await once(second, "data")) as [Buffer]
    expect(echo.toString()).toBe("still here")
    await eventually(() => system.refused.length === 1)
    expect(system.refused).toEqual([`policy-changed one.test ${server.port}`])
    expect(await system.say(connectTo("one.test", server.port))).toContain("not-listed")
    expect(() => system.proxy.replacePolicy({ mode: "list", allow: ["*"] })).toThrow(/is not a rule/)
    expect(system.proxy.policy.allow).toEqual([two])
    system.proxy.replacePolicy({ mode: "none" })
    await heard(second)
  })
})
