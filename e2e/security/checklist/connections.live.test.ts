import type { IncomingMessage } from "node:http"
import { existsSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { once } from "node:events"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ownHost } from "../../gateway/door.ts"
import { mebibyte, quiet, Subject } from "./subject.ts"

/** Half of what a request to the page could be; nothing more comes. */
const halfHeads = ["", "GET /v1/health HTTP/1.1\r\nHost: loc", "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-"]

/** Rows of the security checklist that no other test has whole. */
describe.skipIf(process.getuid?.() !== 0)("the checklist, for connections", { timeout: 120_000 }, () => {
  let subject: Subject
  /** Opened first, so that the others need not wait for their end. */
  let slow: { readonly socket: Socket; readonly closed: Promise<unknown> }[] = []

  beforeAll(async () => {
    subject = await Subject.start()
    slow = halfHeads.map((text) => slowly(subject.system.port, text))
  }, 120_000)
  afterAll(async () => {
    for (const { socket } of slow) socket.destroy()
    await subject?.[Symbol.asyncDispose]()
  }, 120_000)

  test("who comes and goes, half-way through, costs nothing (PRO-04)", async () => {
    await subject.healthy()
    const places = [
      { port: subject.system.port },
      ...["rpc", "control", "gateway"].map((name) => ({ path: subject.system.home.at("ipc", `${name}.sock`) })),
    ]
    const before = subject.descriptors()
    const pieces = [
      "",
      "GET /",
      "\x00\x00\x00\x10{",
      "\xff\xff\xff\xff",
      "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
    ]
    let came = 0
    for (const place of places.filter((one) => "port" in one || existsSync(one.path))) {
      for (let n = 0; n < 300; n++) {
        const socket = connect("port" in place ? { host: "127.0.0.1", ...place } : place).on("error", () => undefined)
        await once(socket, "connect")
        socket.write(Buffer.from(pieces[n % pieces.length] ?? "", "latin1"))
        if (n % 3 === 0) socket.end()
        if (n % 3 !== 0 && "port" in place) socket.resetAndDestroy()
        socket.destroy()
        came++
      }
    }
    expect(came).toBeGreaterThanOrEqual(900)
    await expect.poll(() => subject.descriptors(), { timeout: 30_000 }).toBeLessThan(before + 30)
    await subject.healthy()
  })

  test("a WebSocket that breaks the rules is closed, and nothing is unpacked (PRO-13)", async () => {
    const upgraded = async (): Promise<Socket> => {
      const headers = {
        authorization: `Bearer ${subject.system.token}`,
        "sec-websocket-extensions": "permessage-deflate; client_max_window_bits",
      }
      const { head, socket } = await subject.door.upgrade(`/v1/sessions/${subject.session}/exec`, { headers })
      expect(head).toMatch(/^HTTP\/1\.1 101 /)
      expect(head.toLowerCase()).not.toContain("permessage-deflate")
      return socket
    }
    const masked = (first: number, body: Buffer): Buffer =>
      Buffer.concat([Buffer.from([first, 0x80 | body.length]), Buffer.alloc(4), body])
    const broken: Record<string, Buffer> = {
      "without a mask": Buffer.from([0x81, 2, 0x7b, 0x7d]),
      "an opcode that is none": masked(0x83, Buffer.from("{}")),
      "a bit that means nothing": masked(0xf1, Buffer.from("{}")),
      "packed, though nobody agreed": masked(0xc1, Buffer.from("{}")),
      "a long ping": Buffer.concat([Buffer.from([0x89, 0xfe, 0, 126]), Buffer.alloc(4 + 126)]),
      "a ping in pieces": masked(0x09, Buffer.from("x")),
      "a piece of nothing": masked(0x80, Buffer.from("x")),
      "text that is none": masked(0x81, Buffer.from([0xff])),
      "a length of 2^63": Buffer.from([0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]),
    }
    for (const [what, bytes] of Object.entries(broken)) {
      const socket = await upgraded()
      const said = gathered(socket)
      socket.write(bytes)
      expect([what, closeCodeOf(await said)]).toEqual([
        what,
        expect.toSatisfy((code: number) => [1002, 1006, 1007, 1009].includes(code)),
      ])
    }
    const before = subject.residentBytes()
    const [pinging, trickling] = [await upgraded(), await upgraded()]
    const [pongs, ends] = [gathered(pinging), gathered(trickling)]
    for (let n = 0; n < 20; n++)
      pinging.write(Buffer.concat(Array.from({ length: 1_000 }, () => masked(0x89, Buffer.from("ping")))))
    // A first message in a million pieces, which has no end.
    trickling.write(masked(0x01, Buffer.from("{")))
    for (let n = 0; n < 50; n++)
      trickling.write(Buffer.concat(Array.from({ length: 20_000 }, () => masked(0x00, Buffer.from(" ")))))
    await subject.healthy()
    expect(subject.residentBytes() - before).toBeLessThan(200 * mebibyte)
    pinging.destroy()
    trickling.destroy()
    await Promise.all([pongs, ends])
    await subject.healthy()
  })

  test("line ends within a header come through neither way, and nothing after them (PRO-17)", async () => {
    const broken = [
      ...["X-A: b\rSet-Cookie: planted=1", "X-A: b\0c", "X-A: b\r\n planted: 1", "X A: planted", "X-A\n: planted"],
    ]
    const answers = ["X-A: fine", ...broken].map((line) =>
      Buffer.from(`HTTP/1.1 200 OK\r\n${line}\r\nContent-Length: 0\r\n\r\n`).toString("base64"),
    )
    const server = `const [, ...answers] = process.argv; let n = 0
      require("net").createServer((s) => s.on("error", () => 0).once("data", (heard) => {
        require("fs").appendFileSync("/tmp/heard", heard)
        s.end(Buffer.from(answers[n++ % answers.length], "base64"))
      })).listen(8123)`
    await subject.json(`/v1/sessions/${subject.session}/processes`, { argv: ["node", "-e", server, ...answers] })
    const listening = "cat /proc/net/tcp6 /proc/net/tcp | grep -c :1FBB"
    await expect.poll(() => subject.run(listening), { timeout: 30_000 }).not.toBe("0\n")
    const { token } = await subject.json(`/v1/sessions/${subject.session}/gateway-token`, {})
    const headers = { authorization: `Bearer ${String(token)}` }
    const at = `/s/${subject.session}/t/8123/`
    expect((await subject.door.get(at, { headers })).headers["x-a"]).toBe("fine")
    for (const said of broken) {
      const { status, raw } = await subject.door.get(at, { headers })
      expect([said, status, raw.join(" ").includes("planted")]).toEqual([said, 502, false])
    }
    const heard = await subject.run("cat /tmp/heard")
    for (const value of ["b\rX-Planted: 1", "b\nX-Planted: 1", "b\0c", "b\r\n X-Planted: 1"]) {
      const answer = await subject.door.say(
        `GET ${at} HTTP/1.1\r\nHost: localhost:${subject.system.port}\r\nAuthorization: Bearer ${String(token)}\r\nConnection: close\r\nX-A: ${value}\r\n\r\n`,
      )
      expect([value, answer.slice(0, 12)]).toEqual([value, "HTTP/1.1 400"])
    }
    expect(await subject.run("cat /tmp/heard")).toBe(heard)
  })

  test("what was open to a session that is gone is cut, and opens nothing of the next one (AUT-27)", async () => {
    const made = async (): Promise<{ id: string; token: string; host: string }> => {
      const { id } = await subject.json("/v1/sessions", { ...quiet, name: "next" })
      const cmd = `node -e 'require("http").createServer((q, r) => r.write("begun ${String(id)}")).listen(8124)'`
      await subject.json(`/v1/sessions/${String(id)}/processes`, { cmd })
      const { token } = await subject.json(`/v1/sessions/${String(id)}/gateway-token`, {})
      return { id: String(id), token: String(token), host: ownHost(String(id), 8124, subject.system.port) }
    }
    const first = await made()
    const headers = { authorization: `Bearer ${first.token}` }
    const opened = async (): Promise<IncomingMessage> => {
      const asked = subject.door.open(`/s/${first.id}/t/8124/`, { headers })
      asked.on("error", () => undefined).end()
      return ((await once(asked, "response")) as [IncomingMessage])[0]
    }
    await expect.poll(async () => (await opened()).statusCode, { timeout: 30_000 }).toBe(200)
    const open = await opened()
    const cut = new Promise((done) =>
      open
        .on("error", () => undefined)
        .resume()
        .once("close", done),
    )
    expect(await subject.statusOf(`/v1/sessions/${first.id}`, { method: "DELETE" })).toBeLessThan(300)
    await cut
    const next = await made()
    for (const path of [`/s/${first.id}/t/8124/`, `/s/${next.id}/t/8124/`, "/s/next/t/8124/"])
      expect([path, (await subject.door.get(path, { headers })).status]).toEqual([
        path,
        expect.toSatisfy((status: number) => status >= 400 && status < 500),
      ])
    for (const host of [first.host, next.host])
      expect((await subject.door.get("/", { host, headers })).status).toBeGreaterThanOrEqual(400)
    expect(await subject.statusOf(`/v1/sessions/${next.id}`, { method: "DELETE" })).toBeLessThan(300)
  })

  test("who begins a request and says no more is sent away, and nobody waited for them (PRO-03)", async () => {
    await subject.healthy()
    await Promise.all(slow.map(({ closed }) => closed))
  })
})

function slowly(port: number, text: string): { readonly socket: Socket; readonly closed: Promise<unknown> } {
  const socket = connect(port, "127.0.0.1")
    .on("error", () => undefined)
    .resume()
  socket.write(text)
  return { socket, closed: once(socket, "close") }
}

/** Everything a connection says up to its end. */
function gathered(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  socket.on("error", () => undefined).on("data", (piece: Buffer) => pieces.push(piece))
  socket.resume()
  return once(socket, "close").then(() => Buffer.concat(pieces))
}

/** Of the last frame, when that closes; 1006 when the connection was only cut. */
function closeCodeOf(bytes: Buffer): number {
  const at = bytes.lastIndexOf(0x88)
  return at >= 0 && bytes.length >= at + 4 ? bytes.readUInt16BE(at + 2) : 1006
}
