import { once } from "node:events"
import type { Socket } from "node:net"
import { eventually } from "@warren/base/testing/eventually.ts"
import { keptBytes } from "@warren/base/testing/kept-bytes.ts"
import { describe, expect, test } from "vitest"
import { EgressSystem, heard, Loopback, reachable } from "./testing/egress-system.ts"

const get = (port: number): string => `GET http://allowed.test:${port}/ HTTP/1.1\r\nHost: allowed.test:${port}\r\n\r\n`
const hello = (): Promise<Loopback> => Loopback.http((_, response) => void response.end("hello"))

describe("the proxy's limits", () => {
  test("thousands of connections are bounded, and the sandbox can go on afterwards", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      limits: { connectionsMax: 50 },
    })
    const sockets: Socket[] = []
    for (let i = 0; i < 2_000; i++) {
      sockets.push(await system.connect())
      // The kernel's queue for this socket is shorter than all of them: the proxy, in this process too, gets its turn.
      if (i % 100 === 0) await new Promise(setImmediate)
    }
    const isAlive = (socket: Socket): boolean => !socket.destroyed
    for (const socket of sockets) socket.resume()
    await eventually(() => sockets.filter(isAlive).length === 50)
    expect(system.proxy.counters().connections).toBe(50)
    expect(system.proxy.denials.list()[0]).toMatchObject({ reason: "limit", count: 1_950 })
    for (const socket of sockets) socket.destroy()
    await eventually(() => system.proxy.counters().connections === 0)
    const client = await system.connect()
    client.write(get(server.port))
    const [answer] = (await once(client, "data")) as [Buffer]
    expect(answer.toString()).toContain("200 OK")
    client.destroy()
  })

  test("so are requests that are sent without waiting for answers", async () => {
    await using server = await Loopback.http(() => undefined)
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      limits: { connectionsMax: 2 },
    })
    const client = await system.connect()
    client.resume().write(get(server.port).repeat(4))
    await eventually(() => system.proxy.counters().allowed === 2)
    expect(system.proxy.counters()).toMatchObject({ open: 2, connections: 1 })
    client.destroy()
    await eventually(() => system.proxy.counters().open === 0)
    await system.say(get(server.port).repeat(300))
    await eventually(() => system.proxy.counters().open === 0)
    const message = "too many requests without waiting for answers"
    expect(system.proxy.denials.list()).toContainEqual(expect.objectContaining({ message, count: 1 }))
    // What was read together with the one that was too many is not looked at any more.
    await system.say(`${get(server.port).repeat(9)}nonsense\r\n\r\n`)
    expect(system.proxy.denials.list()).toContainEqual(expect.objectContaining({ message, count: 2 }))
    expect(system.refused.filter((one) => one.startsWith("bad-request"))).toEqual([])
  })

  test("who leaves without reading its answer is no news", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const client = await system.connect()
    client.pause().write(get(server.port))
    await eventually(() => system.proxy.counters().receivedBytes > 0 && system.proxy.counters().open === 0)
    // The kernel tells the proxy of what was left unread: a connection that was reset.
    client.destroy()
    await eventually(() => system.proxy.counters().connections === 0)
    expect(system.refused).toEqual([])
  })

  test("who leaves before there is an answer is no news", async () => {
    await using server = await Loopback.http(() => undefined)
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const client = await system.connect()
    client.write(get(server.port))
    await eventually(() => server.open === 1)
    client.destroy()
    await eventually(() => system.proxy.counters().open === 0 && system.proxy.counters().connections === 0)
    expect(system.refused).toEqual([])
  })

  test.each([
    ["nothing", ""],
    ["half a request", "GET http://allowed.test/ HTTP/1.1\r\nHo"],
    ["half a greeting", "\x05\x40\x00"],
    ["half a SOCKS request", "\x05\x01\x00\x05\x01\x00\x03\x10abc"],
  ])("who says %s, drop by drop, is cut", async (_, text) => {
    await using system = await EgressSystem.start({ policy: { mode: "none" }, limits: { handshakeMs: 150 } })
    const client = await system.connect()
    client.write(text)
    const drip = setInterval(() => client.write(text === "" ? "" : "a"), 20)
    await heard(client)
    clearInterval(drip)
    expect(system.refused).toEqual(["slow  0"])
  })

  test("who says half a TLS greeting is cut, and the connection outside with it", async () => {
    await using server = await Loopback.tcp((socket) => void socket.resume())
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      limits: { handshakeMs: 150 },
    })
    await system.say(
      `CONNECT allowed.test:${server.port} HTTP/1.1\r\nHost: allowed.test:${server.port}\r\n\r\n\x16\x03\x01\x02\x00\x01`,
    )
    await eventually(() => system.proxy.counters().open === 0)
    expect(system.refused[0]).toContain("slow")
  })

  test("who keeps a connection without using it is let go, quietly", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      limits: { keepAliveMs: 100 },
    })
    expect(await system.say(get(server.port))).toContain("hello")
    expect(system.refused).toEqual([])
    await using silent = await EgressSystem.start({
      policy: {
        mode: "list",
        allow: [`tcp://allowed.test:${server.port}`],
        allowPrivate: [`127.0.0.1:${server.port}`],
      },
      names: { "allowed.test": ["127.0.0.1"] },
      limits: { idleMs: 100 },
    })
    await silent.say(`CONNECT allowed.test:${server.port} HTTP/1.1\r\nHost: allowed.test:${server.port}\r\n\r\n`)
    await eventually(() => silent.proxy.counters().open === 0)
  })

  test("ten megabytes of headers are refused without being kept", async () => {
    await using system = await EgressSystem.start({ policy: { mode: "none" } })
    const before = keptBytes()
    const client = await system.connect()
    const answer = heard(client)
    client.write("GET http://allowed.test/ HTTP/1.1\r\n")
    const line = `X-Long: ${"a".repeat(100_000)}\r\n`
    for (let i = 0; i < 100 && !client.destroyed; i++) client.write(line)
    expect(await answer).toMatch(/^HTTP\/1.1 431 /)
    expect(keptBytes() - before).toBeLessThan(5_000_000)
  })

  test("a resolver that never answers, or throws a fit, ends one request only", async () => {
    await using server = await hello()
    const fit = "fit.test"
    const names = {
      "allowed.test": ["127.0.0.1"],
      "never.test": new Promise<never>(() => undefined) as unknown as string[],
      get [fit](): string[] {
        throw new Error("a fit")
      },
    }
    const allow = ["fit.test", "never.test", `allowed.test:${server.port}`]
    await using system = await EgressSystem.start({
      policy: { mode: "list", allow, allowPrivate: [`127.0.0.1:${server.port}`] },
      limits: { resolveMs: 100 },
      names,
    })
    const request = (name: string): string =>
      `GET http://${name}/ HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`
    expect(await system.say(request("fit.test"))).toContain("unresolved")
    expect(await system.say(request("never.test"))).toContain("unresolved")
    expect(await system.say(get(server.port).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))).toContain("hello")
  })

  test("nothing is left when it ends, whatever was going on", async () => {
    await using server = await Loopback.http(() => undefined)
    const system = await EgressSystem.start(reachable("allowed.test", server.port))
    const client = await system.connect()
    client.write(get(server.port))
    await eventually(() => server.open === 1)
    await system[Symbol.asyncDispose]()
    await heard(client)
    await eventually(() => server.open === 0)
    await system.proxy[Symbol.asyncDispose]()
  })
})
