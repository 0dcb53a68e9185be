import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { describe, expect, test } from "vitest"
import { EgressSystem, heard, Loopback, reachable } from "./testing/egress-system.ts"

const run = promisify(execFile)
const hello = (): Promise<Loopback> =>
  Loopback.http((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => (body += chunk.toString()))
    request.on("end", () => response.end(JSON.stringify({ url: request.url, headers: request.headers, body })))
  })
const get = (url: string, host: string, more = ""): string =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`

describe("HTTP through the proxy", () => {
  test("an allowed host is reached, with curl, by every kind of proxy", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const port = await system.forwarder()
    for (const proxy of ["http", "socks5h"]) {
      const { stdout } = await run("curl", [
        "-sS",
        "-x",
        `${proxy}://127.0.0.1:${port}`,
        "--data",
        "hi",
        `http://Allowed.Test.:${server.port}/a?b`,
      ])
      expect(JSON.parse(stdout)).toMatchObject({ url: "/a?b", body: "hi" })
    }
    const tunnelled = await run("curl", [
      "-sS",
      "-p",
      "-x",
      `http://127.0.0.1:${port}`,
      `http://allowed.test:${server.port}/`,
      `http://allowed.test:${server.port}/2`,
    ])
    expect(tunnelled.stdout).toContain('"url":"/2"')
    expect(system.refused).toEqual([])
    expect(system.proxy.counters()).toMatchObject({ allowed: 4, denied: 0 })
    expect(system.proxy.counters().receivedBytes).toBeGreaterThan(400)
  })

  test("what belongs to one connection is not passed on", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const headers =
      "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nX-Hop: 1\r\nX-Stays: 2\r\nConnection: x-hop, host\r\n"
    const answer = await system.say(
      get(`http://allowed.test:${server.port}/../a%2e`, `allowed.test:${server.port}`, headers),
    )
    expect(answer).toContain('"url":"/../a%2e"')
    expect(answer).toContain('"x-stays":"2"')
    expect(answer).not.toMatch(/c2VjcmV0|x-hop|proxy-connection/)
  })

  test("the host is said once, in its one spelling, and who asks whether to go on is answered here", async () => {
    await using server = await Loopback.http((request, response) => void response.end(request.rawHeaders.join("\n")))
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const more = "Expect: 100-continue\r\nContent-Length: 2\r\n"
    const host = `Allowed.TEST.:${server.port}`
    const answer = await system.say(`${get(`http://${host}/`, host, more).replace("GET", "POST")}hi`)
    expect(answer).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/)
    expect(answer.match(/^host\n.*/gim)).toEqual([`Host\nallowed.test:${server.port}`])
    expect(answer).not.toMatch(/^expect$/im)
  })

  test("everything else is refused and listed", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const at = (host: string, port: number | string = server.port): string =>
      get(`http://${host}:${port}/`, `${host}:${port}`)
    const cases: [string, string][] = [
      [at("other.test"), `not-listed other.test ${server.port}`],
      [at("allowed.test", server.port + 1), `port allowed.test ${server.port + 1}`],
      [get("http://allowed.test/", "allowed.test"), "port allowed.test 80"],
      [at("sub.allowed.test"), `not-listed sub.allowed.test ${server.port}`],
      [at("8.8.8.8", 80), "plain-address 8.8.8.8 80"],
      [at("127.0.0.1", 1), "plain-address 127.0.0.1 1"],
      [at("[::1]"), `plain-address ::1 ${server.port}`],
      [at("[::ffff:127.0.0.1]"), `plain-address ::ffff:7f00:1 ${server.port}`],
      [at("2130706433"), "bad-host 2130706433 0"],
      [at("0177.0.0.1"), "bad-host 0177.0.0.1 0"],
      [at("allowed.test%00.evil"), "bad-host allowed.test%00.evil 0"],
      [get(`http://allowed.test:3000@evil.test/`, "evil.test"), "bad-host allowed.test:3000@evil.test 0"],
      [get(`https://allowed.test:${server.port}/`, "allowed.test"), "bad-request  0"],
      [get("ftp://allowed.test/", "allowed.test"), "bad-request  0"],
      [get(`http://allowed.test:${server.port}/a#b`, `allowed.test:${server.port}`), "bad-request  0"],
      [get(`http://allowed.test:${server.port}/`, "evil.test"), `host-mismatch allowed.test ${server.port}`],
      [get(`http://allowed.test:${server.port}/`, "allowed.test"), `host-mismatch allowed.test ${server.port}`],
      [
        get(`http://allowed.test:${server.port}/`, `allowed.test:${server.port}`, "Host: evil.test\r\n"),
        `host-mismatch allowed.test ${server.port}`,
      ],
      [get("/local", "127.0.0.1"), "bad-request  0"],
      ["GET http://allowed.test\0.evil/ HTTP/1.1\r\nHost: a\r\n\r\n", "bad-request  0"],
      ["\x16\x03\x01nonsense\r\n\r\n", "bad-request  0"],
      [
        get(
          `http://allowed.test:${server.port}/`,
          `allowed.test:${server.port}`,
          "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        ),
        "bad-request  0",
      ],
    ]
    for (const [request, denial] of cases) {
      const answer = await system.say(request)
      expect(answer, request).toMatch(/^HTTP\/1.1 4/)
      expect(system.refused[0], request).toBe(denial)
    }
    expect(server.accepted).toBe(0)
    expect(system.asked).toEqual([])
    await system.say(at("other.test"))
    expect(system.proxy.denials.list()[0]).toMatchObject({ reason: "not-listed", host: "other.test", count: 2 })
    expect(system.proxy.denials.journal.tail(1)[0]?.item).toMatchObject({ host: "other.test", count: 2 })
  })

  test("a name that leads to a forbidden address is refused, the first or the second time", async () => {
    await using server = await hello()
    const names: Record<string, readonly string[]> = {}
    const policy = { mode: "all-public" as const, allow: [`rebind.test:${server.port}`] }
    await using system = await EgressSystem.start({ policy, names })
    const bad = [
      "127.0.0.1",
      "169.254.169.254",
      "10.0.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "0.0.0.0",
      "::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "fe80::1",
      "fd00:ec2::254",
      "224.0.0.1",
      "192.0.2.2",
    ]
    for (const address of bad) {
      for (const addresses of [[address], ["93.184.216.34", address]]) {
        names["rebind.test"] = addresses
        const answer = await system.say(get(`http://rebind.test:${server.port}/`, `rebind.test:${server.port}`))
        expect(answer, address).toMatch(/^HTTP\/1.1 403 .*x-warren-denied: private-address/s)
      }
    }
    expect(system.asked).toHaveLength(bad.length * 2)
    expect(system.refused).toEqual([`private-address rebind.test ${server.port}`])
    // First somewhere good, then to us: each connection asks once, and dials what it was told then.
    system.proxy.replacePolicy({ ...policy, allowPrivate: [`127.0.0.1:${server.port}`] })
    names["rebind.test"] = ["127.0.0.1"]
    const request = get(`http://rebind.test:${server.port}/`, `rebind.test:${server.port}`)
    expect(await system.say(request)).toContain("200 OK")
    expect(system.asked).toHaveLength(bad.length * 2 + 1)
    names["rebind.test"] = ["127.0.0.2"]
    expect(await system.say(request)).toContain("private-address")
    expect(server.accepted).toBe(1)
    expect(system.proxy.degraded()).toHaveLength(1)
  })

  test("a redirect is the client's to follow, and is checked again", async () => {
    await using server = await Loopback.http((_, response) => {
      response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end()
    })
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const port = await system.forwarder()
    const { stdout } = await run("curl", [
      "-sS",
      "-L",
      "-x",
      `http://127.0.0.1:${port}`,
      `http://allowed.test:${server.port}/`,
    ])
    expect(stdout).toContain("the address 169.254.169.254 is not allowed")
    expect(system.refused).toEqual(["plain-address 169.254.169.254 80"])
  })

  test("a host that is not there, or breaks off, is a clear answer", async () => {
    await using closing = await Loopback.tcp((socket) => socket.once("data", () => socket.destroy()))
    await using system = await EgressSystem.start({
      policy: {
        mode: "list",
        allow: [`allowed.test:${closing.port}`, "nowhere.test", "allowed.test:1"],
        allowPrivate: [`127.0.0.1:${closing.port}`, "127.0.0.1:1"],
      },
      names: { "allowed.test": ["127.0.0.1"] },
    })
    expect(await system.say(get("http://nowhere.test/", "nowhere.test"))).toMatch(/^HTTP\/1.1 503 .*unresolved/s)
    expect(await system.say(get("http://allowed.test:1/", "allowed.test:1"))).toMatch(/^HTTP\/1.1 503 .*unreachable/s)
    const broken = await system.say(get(`http://allowed.test:${closing.port}/`, `allowed.test:${closing.port}`))
    expect(broken).toMatch(/^HTTP\/1.1 503 .*unreachable/s)
    await using halfway = await Loopback.tcp((socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")),
    )
    system.proxy.replacePolicy(reachable("allowed.test", halfway.port).policy)
    const cut = await system.say(get(`http://allowed.test:${halfway.port}/`, `allowed.test:${halfway.port}`))
    expect(cut).toMatch(/^HTTP\/1.1 200 OK\r\n.*\r\n\r\nhalf$/s)
    expect(system.refused[0]).toBe(`unreachable allowed.test ${halfway.port}`)
  })

  test("another protocol is spoken only when the other end agreed", async () => {
    await using server = await Loopback.tcp((socket) => {
      socket.once("data", (chunk: Buffer) => {
        if (chunk.toString().includes("/no")) return socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst")
        return socket.pipe(socket)
      })
    })
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const ask = (path: string): string =>
      `GET http://allowed.test:${server.port}${path} HTTP/1.1\r\nHost: allowed.test:${server.port}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`
    const client = await system.connect()
    client.end(`${ask("/yes")}more`)
    expect(await heard(client)).toMatch(/101 Switching.*\r\n\r\nfirstmore$/s)
    const refused = await system.say(`${ask("/no")}GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n`)
    expect(refused).toMatch(/^HTTP\/1.1 200 OK.*Connection: close\r\n\r\nno$/s)
  })

  test("requests to the proxy itself go to the runner", async () => {
    await using system = await EgressSystem.start({
      policy: { mode: "none" },
      local: (request, response) => void response.end(`local ${request.url}`),
    })
    expect(await system.say(get("/anthropic/v1", "127.0.0.1:3128"))).toContain("local /anthropic/v1")
    expect(await system.say(get("http://broker.warren/x", "broker.warren"))).toContain("local /x")
    expect(await system.say(get("http://broker.warren:8080/x", "broker.warren:8080"))).not.toContain("local")
    const tunnelled = await system.say(
      `CONNECT broker.warren:80 HTTP/1.1\r\nHost: broker.warren:80\r\n\r\n${get("/y", "broker.warren")}`,
    )
    expect(tunnelled).toContain("local /y")
    expect(await system.say(get("http://example.com/", "example.com"))).toContain("x-warren-denied: network-off")
    const upgrade = "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    expect(await system.say(upgrade)).toMatch(/^HTTP\/1.1 400 .*nothing is upgraded here/s)
  })
})
