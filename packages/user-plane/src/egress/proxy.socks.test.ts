import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { eventually } from "@warren/base/testing/eventually.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Denied } from "./denied.ts"
import { readGreeting, readPassword, readRequest } from "./socks.ts"
import { EgressSystem, Loopback, reachable } from "./testing/egress-system.ts"

const run = promisify(execFile)
const greeting = Buffer.from([5, 1, 0])

function request(type: number, address: Buffer, port: number, command = 1): Buffer {
  return Buffer.concat([Buffer.from([5, command, 0, type]), address, Buffer.from([port >> 8, port & 255])])
}

function named(name: string | Buffer, port: number): Buffer {
  const bytes = Buffer.from(name)
  return request(3, Buffer.concat([Buffer.from([bytes.length]), bytes]), port)
}

const hello = (): Promise<Loopback> => Loopback.http((_, response) => void response.end("hello"))

describe("SOCKS5", () => {
  test("reaches an allowed host, with and without a password, straight over the socket", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    for (const who of ["", "user:password@"]) {
      const proxy = `socks5h://${who}localhost${system.socket}`
      const { stdout } = await run("curl", ["-sS", "-x", proxy, `http://allowed.test:${server.port}/`])
      expect(stdout).toBe("hello")
    }
    // Only a password offered: it is taken.
    const login = Buffer.from([5, 1, 2, 1, 1, 0x61, 1, 0x62])
    const get = Buffer.from(`GET / HTTP/1.1\r\nHost: allowed.test:${server.port}\r\nConnection: close\r\n\r\n`)
    const answer = await system.say(Buffer.concat([login, named("allowed.test", server.port), get]))
    expect(answer.startsWith("\x05\x02\x01\x00\x05\x00\x00\x01")).toBe(true)
    expect(answer).toContain("hello")
  })

  test("everything else is refused and listed", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start(reachable("allowed.test", server.port))
    const cases: [Buffer, string][] = [
      [named("evil.test", 443), "not-listed evil.test 443"],
      [named("allowed.test", 22), "port allowed.test 22"],
      [named("allowed.test\0.evil.test", server.port), "bad-host allowed.test?.evil.test 0"],
      [named("evil.test\0allowed.test", server.port), "bad-host evil.test?allowed.test 0"],
      [named(Buffer.from([0xff, 0xfe]), 443), "bad-host  0"],
      [named("", 443), "bad-host  0"],
      [named("127.0.0.1", 443), "plain-address 127.0.0.1 443"],
      [named("2130706433", 443), "bad-host 2130706433 0"],
      [request(1, Buffer.from([127, 0, 0, 1]), 443), "plain-address 127.0.0.1 443"],
      [request(1, Buffer.from([169, 254, 169, 254]), 80), "plain-address 169.254.169.254 80"],
      [request(4, Buffer.from("00000000000000000000ffff7f000001", "hex"), 443), "plain-address ::ffff:7f00:1 443"],
      [request(4, Buffer.from("0064ff9b00000000000000007f000001", "hex"), 443), "plain-address 64:ff9b::7f00:1 443"],
      [named("allowed.test", 0), "bad-host  0"],
      [request(9, Buffer.alloc(4), 443), "bad-request  0"],
      [request(1, Buffer.alloc(4), 443, 2), "bad-request  0"],
      [request(1, Buffer.alloc(4), 443, 3), "bad-request  0"],
    ]
    for (const [bytes, denial] of cases) {
      const answer = Buffer.from(await system.say(Buffer.concat([greeting, bytes])), "latin1")
      expect(answer.subarray(0, 3), denial).toEqual(Buffer.from([5, 0, 5]))
      expect(answer[3], denial).not.toBe(0)
      expect(system.refused[0]).toBe(denial)
    }
    const before = system.proxy.denials.total
    expect((await system.say(Buffer.from([5, 1, 9]))).startsWith("\x05\xff")).toBe(true)
    expect(system.refused[0]).toBe("bad-request  0")
    expect(system.proxy.denials.total).toBe(before + 1)
    expect(server.accepted).toBe(0)
  })

  test("an address that is listed is reached by its bytes", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start({
      policy: { mode: "list", allowPrivate: [`127.0.0.1:${server.port}`] },
    })
    const { stdout } = await run("curl", [
      "-sS",
      "-x",
      `socks5://localhost${system.socket}`,
      `http://127.0.0.1:${server.port}/`,
    ])
    expect(stdout).toBe("hello")
    expect(system.asked).toEqual([])
  })

  const messages: [string, (bytes: Buffer) => unknown, Buffer][] = [
    ["greeting", readGreeting, Buffer.from([5, 2, 0, 2])],
    ["login", readPassword, Buffer.from([1, 1, 0x61, 2, 0x62, 0x63])],
    ["request by name", readRequest, named("a.test", 443)],
    ["request by address", readRequest, request(1, Buffer.from([8, 8, 8, 8]), 443)],
    ["request by long address", readRequest, request(4, Buffer.alloc(16, 1), 443)],
  ]

  test.each(messages)(
    "a %s that has not come whole is waited for, and nothing behind it is taken",
    (_, read, whole) => {
      for (let end = 0; end < whole.length; end++) expect(read(whole.subarray(0, end)), `${end}`).toBeUndefined()
      expect(read(whole)).toMatchObject({ used: whole.length })
      expect(read(Buffer.concat([whole, Buffer.from("more")]))).toMatchObject({ used: whole.length })
    },
  )

  test.each(messages)("a %s of another version is refused at its first byte", (_, read) => {
    for (const version of [0, 4, 6, 255]) expect(() => read(Buffer.from([version]))).toThrow(Denied)
  })

  test("a request with something in the place that is reserved is refused", () => {
    expect(() => readRequest(Buffer.from([5, 1, 1]))).toThrow(/not a request/)
  })

  test("nonsense is refused or waits for more, and nothing else", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      fc.uint8Array({ maxLength: 600 }).map((rest) => Uint8Array.of(5, 1, 0, ...rest)),
    )
    fc.assert(
      fc.property(bytes, fc.constantFrom(readGreeting, readPassword, readRequest), (raw, read) => {
        try {
          const head = read(Buffer.from(raw))
          if (head) expect(head.used).toBeLessThanOrEqual(raw.length)
          if (head && typeof head.value === "object" && "host" in head.value) head.value.host()
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(Denied)
        }
      }),
      { numRuns: 3_000 },
    )
  })

  test("nonsense on the socket harms nobody else", async () => {
    await using server = await hello()
    await using system = await EgressSystem.start({
      ...reachable("allowed.test", server.port),
      limits: { handshakeMs: 300 },
    })
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.boolean(), async (raw, isSocks) => {
        const socket = await system.connect()
        socket.resume().end(Buffer.from(isSocks ? [5, 1, 0, ...raw] : raw))
        if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve))
      }),
      { numRuns: 150 },
    )
    await eventually(() => system.proxy.counters().connections === 0)
    expect(server.accepted).toBe(0)
    const { stdout } = await run("curl", [
      "-sS",
      "-x",
      `socks5h://localhost${system.socket}`,
      `http://allowed.test:${server.port}/`,
    ])
    expect(stdout).toBe("hello")
  })
})
