import type { IncomingMessage } from "node:http"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { once } from "node:events"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ApiSystem } from "../../api/system.ts"
import { Door, ownHost } from "../../gateway/door.ts"

const mebibyte = 2 ** 20
/** Half of what a request to the page could be; nothing more comes. */
const halfHeads = ["", "GET /v1/health HTTP/1.1\r\nHost: loc", "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-"]
/** Loaded into every program of the system: told to, it fails where nobody catches it. */
const bomb = join(tmpdir(), `warren-bomb-${process.pid}.cjs`)
const failing = `if (process.argv[1].includes("control")) throw new Error("injected"); Promise.reject(new Error("injected"))`
const quiet = { network: { mode: "none" } } as const

/** Rows of the security checklist that no other test has whole, asked for at the one door that everybody reaches. */
describe.skipIf(process.getuid?.() !== 0)("the checklist, at the API", { timeout: 120_000 }, () => {
  let system: ApiSystem
  let door: Door
  let session = ""
  /** Opened first, so that the others need not wait for their end. */
  let slow: { readonly socket: Socket; readonly closed: Promise<unknown> }[] = []

  beforeAll(async () => {
    writeFileSync(bomb, `process.once("SIGUSR2", () => { ${failing} })`)
    system = await ApiSystem.start({ NODE_OPTIONS: `--require=${bomb}` })
    door = new Door(system.port)
    slow = halfHeads.map((text) => slowly(system.port, text))
    await json("/v1/workspaces", { name: "listed" })
    session = String((await json("/v1/sessions", { ...quiet, name: "listed", workspace: "listed" }))["id"])
  }, 120_000)
  afterAll(async () => {
    for (const { socket } of slow) socket.destroy()
    await system?.[Symbol.asyncDispose]()
    rmSync(bomb, { force: true })
  }, 120_000)

  const json = async (
    path: string,
    body: object,
    headers: Record<string, string> = {},
  ): Promise<Record<string, unknown>> => {
    const answer = await system.fetch(path, { method: "POST", body: JSON.stringify(body), headers })
    const text = await answer.text()
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }
  const run = async (cmd: string): Promise<string> =>
    String((await json(`/v1/sessions/${session}/exec`, { cmd }))["stdout"])
  const inSession = (path: string, more = ""): string =>
    `/v1/sessions/${session}/files/content?path=${encodeURIComponent(path)}${more}`
  const inWorkspace = (path: string): string => `/v1/workspaces/listed/content?path=${encodeURIComponent(path)}`
  const statusOf = async (path: string, init?: RequestInit): Promise<number> => {
    const answer = await system.fetch(path, init)
    await answer.arrayBuffer()
    return answer.status
  }
  const healthy = async (): Promise<void> => {
    expect(await statusOf("/v1/health")).toBe(200)
    expect(await run("echo alive")).toBe("alive\n")
  }
  /** The process of the runner and that of the control plane. */
  const residentBytes = (): number => Math.max(...Object.values(system.pids).map(residentBytesOf))
  const descriptors = (): number =>
    Object.values(system.pids).reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0)

  test("pipes that nobody writes to are refused, many at once, and hold up nobody (FS-04)", async () => {
    await run("cd /workspace && mkfifo p1 p2 p3 p4 && echo read > plain")
    const names = ["p1", "p2", "p3", "p4", "p1", "p2", "p3", "p4"]
    const asked = names.flatMap((name) => [statusOf(inSession(`/workspace/${name}`)), statusOf(inWorkspace(name))])
    expect(new Set(await Promise.all(asked))).toEqual(new Set([400]))
    for (const path of [inSession("/workspace/plain"), inWorkspace("plain")])
      expect(await (await system.fetch(path)).text()).toBe("read\n")
  })

  test("files without an end are sent as they are read, and kept by nobody (FS-06)", async () => {
    await run(
      "cd /workspace && truncate -s 1T sparse && echo > growing; (while :; do echo more; sleep 0.01; done >> growing) & echo $! > /tmp/grows",
    )
    const before = residentBytes()
    for (const path of [inSession("/workspace/sparse"), inWorkspace("sparse")]) {
      const cut = new AbortController()
      const answer = await system.fetch(path, { signal: cut.signal })
      expect(answer.status).toBe(200)
      let bytes = 0
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
        bytes += piece.length
        if (bytes > 64 * mebibyte) break
      }
      cut.abort()
      expect(residentBytes() - before).toBeLessThan(150 * mebibyte)
    }
    // What grows while it is read has an end all the same.
    for (const path of [inSession("/workspace/growing"), inWorkspace("growing")])
      expect((await (await system.fetch(path)).arrayBuffer()).byteLength).toBeGreaterThan(0)
    await run("kill -KILL $(cat /tmp/grows)")
    for (const path of ["/dev/zero", "/proc/kmsg", "/dev/tty", "/proc/self/mem"])
      expect([path, await statusOf(inSession(path))]).toEqual([
        path,
        expect.toSatisfy((status: number) => status >= 400 && status < 500),
      ])
    await healthy()
  })

  test("paths that could mean another place are none (FS-08)", async () => {
    const forms = [
      ...[
        "..",
        "../x",
        "a/..",
        "a/../..",
        "a/../../etc/passwd",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "a\0b",
        "\0",
        "../\0",
      ],
      ...[
        "..\0",
        "a/..\0/b",
        "./..",
        "a/./../..",
        "...//../..",
        `${"a/".repeat(3_000)}b`,
        "x".repeat(5_000),
        "../".repeat(40),
      ],
      ...[".//../x", "a//../../x", `${"../".repeat(10)}etc/passwd`, "a/b/../../../x", "..//..//x"],
    ]
    // Which are plain names, and none that a server may take apart once more.
    const names = [
      "%2e%2e",
      "%2e%2e%2fx",
      "..%2f",
      "..\\x",
      "a\\..\\..",
      "C:\\x",
      "a.",
      " ",
      "~",
      "$HOME",
      "....",
      "..;x",
      "‥",
      "．．",
    ]
    for (const form of forms) {
      expect([form.slice(0, 40), await statusOf(inWorkspace(form))]).toEqual([form.slice(0, 40), 400])
      expect([form.slice(0, 40), await statusOf(inWorkspace(form), { method: "PUT", body: "x" })]).toEqual([
        form.slice(0, 40),
        400,
      ])
    }
    for (const name of names) {
      expect([name, await statusOf(inWorkspace(name))]).toEqual([name, 404])
      expect([name, await statusOf(inWorkspace(name), { method: "PUT", body: name })]).toEqual([name, 200])
      expect(await (await system.fetch(inWorkspace(name))).text()).toBe(name)
    }
    const made = (await run("cd /workspace && ls -AN1")).split("\n")
    expect(names.filter((name) => !made.includes(name.split("/")[0] ?? ""))).toEqual([])
    // In a session a path begins at its root, whatever is in it.
    for (const form of ["", "relative", "a\0b", `/${"x".repeat(5_000)}`, "../etc/passwd"])
      expect([form.slice(0, 40), await statusOf(inSession(form))]).toEqual([form.slice(0, 40), 400])
  })

  test("what somebody wrote is no page of ours, whatever it is called (FS-19)", async () => {
    const page = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(document.cookie)'/><script>alert(1)</script>"
    for (const name of ["a.html", "a.svg", "a.js", "a.xhtml", "index.html"]) {
      for (const path of [inWorkspace(name), inSession(`/workspace/${name}`)]) {
        expect(await statusOf(path, { method: "PUT", body: page })).toBe(200)
        const answer = await system.fetch(path, { headers: { accept: "text/html", "sec-fetch-dest": "document" } })
        expect(await answer.text()).toBe(page)
        expect([name, answer.headers.get("content-type"), answer.headers.get("x-content-type-options")]).toEqual([
          name,
          "application/octet-stream",
          "nosniff",
        ])
      }
    }
  })

  test("three hundred requests at once for one session are answered or put off, and leave nothing (RES-21)", async () => {
    await healthy()
    const before = descriptors()
    const asks = Array.from({ length: 300 }, (_, n) =>
      n % 2 === 0
        ? statusOf(`/v1/sessions/${session}/exec`, { method: "POST", body: '{"cmd":"true"}' })
        : statusOf(inSession("/etc/hostname")),
    )
    const statuses = (await Promise.allSettled(asks)).map((one) =>
      one.status === "fulfilled" ? one.value : String(one.reason),
    )
    expect(statuses.filter((status) => ![200, 429, 503].includes(Number(status)))).toEqual([])
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(100)
    await healthy()
    // Connections that are kept for the next request are few.
    await expect.poll(descriptors, { timeout: 30_000 }).toBeLessThan(before + 600)
    expect(await run("ls /proc | grep -c '^[0-9]'")).toMatch(/^[1-9]\n$/)
  })

  test("who comes and goes, half-way through, costs nothing (PRO-04)", async () => {
    await healthy()
    const places = [
      { port: system.port },
      ...["rpc", "control", "gateway"].map((name) => ({ path: system.home.at("ipc", `${name}.sock`) })),
    ]
    const before = descriptors()
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
    await expect.poll(descriptors, { timeout: 30_000 }).toBeLessThan(before + 30)
    await healthy()
  })

  test("bytes that are no text are refused as text, and carried as bytes (PRO-05)", async () => {
    const odd: Record<string, Buffer> = {
      "no UTF-8": Buffer.from([0xff, 0xfe, 0xc3, 0x28]),
      "a surrogate alone": Buffer.from([0xed, 0xa0, 0x80]),
      overlong: Buffer.from([0xc0, 0xaf]),
      NUL: Buffer.from("a\0b"),
      BOM: Buffer.from([0xef, 0xbb, 0xbf, 0x61]),
    }
    for (const [what, bytes] of Object.entries(odd)) {
      for (const path of [inSession("/home/user/odd"), inWorkspace("odd")]) {
        expect([what, await statusOf(path, { method: "PUT", body: new Uint8Array(bytes) })]).toEqual([what, 200])
        expect([what, Buffer.from(await (await system.fetch(path)).arrayBuffer())]).toEqual([what, bytes])
      }
      const body = Buffer.concat([Buffer.from('{"cmd":"cat","stdin":"'), bytes, Buffer.from('"}')])
      const answer = await system.fetch(`/v1/sessions/${session}/exec`, { method: "POST", body: new Uint8Array(body) })
      // A BOM within a text is a character like any other.
      if (what !== "BOM") expect([what, answer.status]).toEqual([what, 400])
      else expect(((await answer.json()) as { stdout: string }).stdout).toBe("\ufeffa")
    }
    const { files } = await system.warren.sessions.get(session)
    await files.write("/home/user/marked", "\ufeffmarked")
    expect(await files.readText("/home/user/marked")).toBe("\ufeffmarked")
    // As an escape it is JSON, and no text that could be carried on as what it was.
    const lone = await system.fetch(`/v1/sessions/${session}/exec`, {
      method: "POST",
      body: '{"cmd":"cat","stdin":"\\ud800"}',
    })
    expect(lone.status).toBe(400)
  })

  test("JSON that is deep, wide or long is answered at once, by a refusal or as if it were not (PRO-06, RES-23)", async () => {
    const deep = (depth: number, open: string, close: string): string => `${open.repeat(depth)}1${close.repeat(depth)}`
    const bodies: Record<string, string> = {
      "a list in a list": `{"cmd":"true","x":${deep(10_000, "[", "]")}}`,
      "a list in a list, half a million times": `{"cmd":"true","x":${deep(500_000, "[", "]")}}`,
      "an object in an object": `{"env":${deep(100_000, '{"a":', "}")},"cmd":"true"}`,
      "a hundred thousand keys": `{"cmd":"true",${Array.from({ length: 60_000 }, (_, n) => `"k${n}":1`).join(",")}}`,
      "a hundred thousand variables": `{"cmd":"true","env":{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":"1"`).join(",")}}}`,
      "a very long text": `{"cmd":"${"x".repeat(100 * mebibyte)}"}`,
      "no end": `{"a":${"[".repeat(900_000)}`,
    }
    for (const [what, body] of Object.entries(bodies)) {
      const asking = statusOf(`/v1/sessions/${session}/exec`, { method: "POST", body }).catch(() => 429)
      expect([what, await statusOf("/v1/health")]).toEqual([what, 200])
      expect([what, [200, 400, 413, 429].includes(await asking)]).toEqual([what, true])
    }
    await healthy()
  })

  test("asked again and again, and at once, with one key, it is made once (PRO-10, FT-17)", async () => {
    const ask = (key: string): Promise<string> =>
      json("/v1/sessions", quiet, { "idempotency-key": key }).then((one) => JSON.stringify(one))
    const together = new Set(await Promise.all(Array.from({ length: 50 }, () => ask("list-1"))))
    expect(together.size).toBe(1)
    for (let n = 0; n < 100; n++) together.add(await ask("list-1"))
    expect(together.size).toBe(1)
    const [{ id } = { id: "" }] = [...together].map((text) => JSON.parse(text) as { id: string })
    expect(await statusOf(`/v1/sessions/${id}`, { method: "DELETE" })).toBeLessThan(300)
  })

  test("requests that mean two things, or too much, mean nothing (PRO-14, PRO-15, AUT-14, AUT-21)", async () => {
    const host = `Host: localhost:${system.port}\r\n`
    const head = `${host}Authorization: Bearer ${system.token}\r\nConnection: close\r\n`
    const cookies = Array.from({ length: 200 }, (_, n) => `Cookie: warren-sign-in=${"x".repeat(8_000)}${n}\r\n`).join(
      "",
    )
    const raw: Record<string, string> = {
      "two hosts": `GET /v1/sessions HTTP/1.1\r\n${head}Host: evil.example\r\n\r\n`,
      "two hosts, theirs first": `GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\n${head}\r\n`,
      "no host": `GET /v1/sessions HTTP/1.1\r\nAuthorization: Bearer ${system.token}\r\nConnection: close\r\n\r\n`,
      "another host": `GET /v1/sessions HTTP/1.1\r\n${head.replace(host, "Host: evil.example\r\n")}\r\n`,
      "an address": `GET /v1/sessions HTTP/1.1\r\n${head.replace(host, "Host: 127.0.0.2\r\n")}\r\n`,
      "another port": `GET /v1/sessions HTTP/1.1\r\n${head.replace(host, "Host: localhost:1\r\n")}\r\n`,
      "absolute form": `GET http://evil.example/v1/sessions HTTP/1.1\r\n${head}\r\n`,
      "a path to a host": `GET //evil.example/v1/sessions HTTP/1.1\r\n${head}\r\n`,
      "a step up": `GET /v1/x/../sessions HTTP/1.1\r\n${head}\r\n`,
      "a backslash": `GET /v1\\sessions HTTP/1.1\r\n${head}\r\n`,
      "a length and chunks": `POST /v1/sessions HTTP/1.1\r\n${head}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "two lengths": `POST /v1/sessions HTTP/1.1\r\n${head}Content-Length: 0\r\nContent-Length: 5\r\n\r\n{}`,
      "bare line ends": `GET /v1/sessions HTTP/1.1\n${head.replaceAll("\r", "")}\n`,
      "a space before the colon": `GET /v1/sessions HTTP/1.1\r\n${head}X-A : b\r\n\r\n`,
      "a folded line": `GET /v1/sessions HTTP/1.1\r\n${head}X-A: b\r\n c\r\n\r\n`,
      "200 cookies": `GET /v1/sessions HTTP/1.1\r\n${head}${cookies}\r\n`,
      "a name with a NUL": `GET /v1/sessions HTTP/1.1\r\n${head}X-A: b\0c\r\n\r\n`,
    }
    const taken: unknown[] = []
    for (const [what, text] of Object.entries(raw)) {
      const answer = await door.say(text).catch(() => "")
      const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? "cut"
      if (!/^(4\d\d|cut)$/.test(status) || answer.includes('"items"')) taken.push([what, status])
    }
    expect(taken).toEqual([])
  })

  test("pages of others are given no leave to read (AUT-20)", async () => {
    for (const origin of ["https://evil.example", "null", `http://localhost:${system.port}.evil.example`]) {
      for (const method of ["GET", "OPTIONS"]) {
        const { headers, status } = await door.get("/v1/sessions", {
          method,
          headers: { origin, authorization: `Bearer ${system.token}`, "access-control-request-method": "POST" },
        })
        expect([
          origin,
          method,
          status >= 400,
          headers["access-control-allow-origin"],
          headers["access-control-allow-credentials"],
        ]).toEqual([origin, method, true, undefined, undefined])
      }
    }
  })

  test("a WebSocket that breaks the rules is closed, and nothing is unpacked (PRO-13)", async () => {
    const upgraded = async (): Promise<Socket> => {
      const headers = {
        authorization: `Bearer ${system.token}`,
        "sec-websocket-extensions": "permessage-deflate; client_max_window_bits",
      }
      const { head, socket } = await door.upgrade(`/v1/sessions/${session}/exec`, { headers })
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
    const before = residentBytes()
    const [pinging, trickling] = [await upgraded(), await upgraded()]
    const [pongs, ends] = [gathered(pinging), gathered(trickling)]
    for (let n = 0; n < 20; n++)
      pinging.write(Buffer.concat(Array.from({ length: 1_000 }, () => masked(0x89, Buffer.from("ping")))))
    // A first message in a million pieces, which has no end.
    trickling.write(masked(0x01, Buffer.from("{")))
    for (let n = 0; n < 50; n++)
      trickling.write(Buffer.concat(Array.from({ length: 20_000 }, () => masked(0x00, Buffer.from(" ")))))
    await healthy()
    expect(residentBytes() - before).toBeLessThan(200 * mebibyte)
    pinging.destroy()
    trickling.destroy()
    await Promise.all([pongs, ends])
    await healthy()
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
    await json(`/v1/sessions/${session}/processes`, { argv: ["node", "-e", server, ...answers] })
    const listening = "cat /proc/net/tcp6 /proc/net/tcp | grep -c :1FBB"
    await expect.poll(() => run(listening), { timeout: 30_000 }).not.toBe("0\n")
    const { token } = await json(`/v1/sessions/${session}/gateway-token`, {})
    const headers = { authorization: `Bearer ${String(token)}` }
    const at = `/s/${session}/t/8123/`
    expect((await door.get(at, { headers })).headers["x-a"]).toBe("fine")
    for (const said of broken) {
      const { status, raw } = await door.get(at, { headers })
      expect([said, status, raw.join(" ").includes("planted")]).toEqual([said, 502, false])
    }
    const heard = await run("cat /tmp/heard")
    for (const value of ["b\rX-Planted: 1", "b\nX-Planted: 1", "b\0c", "b\r\n X-Planted: 1"]) {
      const answer = await door.say(
        `GET ${at} HTTP/1.1\r\nHost: localhost:${system.port}\r\nAuthorization: Bearer ${String(token)}\r\nConnection: close\r\nX-A: ${value}\r\n\r\n`,
      )
      expect([value, answer.slice(0, 12)]).toEqual([value, "HTTP/1.1 400"])
    }
    expect(await run("cat /tmp/heard")).toBe(heard)
  })

  test("what was open to a session that is gone is cut, and opens nothing of the next one (AUT-27)", async () => {
    const made = async (): Promise<{ id: string; token: string; host: string }> => {
      const { id } = await json("/v1/sessions", { ...quiet, name: "next" })
      const cmd = `node -e 'require("http").createServer((q, r) => r.write("begun ${String(id)}")).listen(8124)'`
      await json(`/v1/sessions/${String(id)}/processes`, { cmd })
      const { token } = await json(`/v1/sessions/${String(id)}/gateway-token`, {})
      return { id: String(id), token: String(token), host: ownHost(String(id), 8124, system.port) }
    }
    const first = await made()
    const headers = { authorization: `Bearer ${first.token}` }
    const opened = async (): Promise<IncomingMessage> => {
      const asked = door.open(`/s/${first.id}/t/8124/`, { headers })
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
    expect(await statusOf(`/v1/sessions/${first.id}`, { method: "DELETE" })).toBeLessThan(300)
    await cut
    const next = await made()
    for (const path of [`/s/${first.id}/t/8124/`, `/s/${next.id}/t/8124/`, "/s/next/t/8124/"])
      expect([path, (await door.get(path, { headers })).status]).toEqual([
        path,
        expect.toSatisfy((status: number) => status >= 400 && status < 500),
      ])
    for (const host of [first.host, next.host])
      expect((await door.get("/", { host, headers })).status).toBeGreaterThanOrEqual(400)
    expect(await statusOf(`/v1/sessions/${next.id}`, { method: "DELETE" })).toBeLessThan(300)
  })

  test("who begins a request and says no more is sent away, and nobody waited for them (PRO-03)", async () => {
    await healthy()
    await Promise.all(slow.map(({ closed }) => closed))
  })

  test("what is said while there is no control plane is told by the next, whole and in order (FT-19)", async () => {
    const cmd = "for n in $(seq 1 500); do echo $n; sleep 0.001; done; touch /tmp/said"
    const { pid } = await json(`/v1/sessions/${session}/processes`, { cmd })
    await system.killControl()
    await system.startControl()
    await expect.poll(() => run("ls /tmp/said"), { timeout: 60_000 }).toBe("/tmp/said\n")
    const answer = await system.fetch(`/v1/sessions/${session}/processes/${String(pid)}/output`)
    expect(await answer.text()).toContain(Array.from({ length: 500 }, (_, n) => n + 1).join("\\n"))
  })

  test("a failure that nobody caught is said and ends whoever it is in; the next has everything (FT-23)", async () => {
    await json(`/v1/sessions/${session}/exec`, { cmd: "echo kept > /home/user/kept" })
    for (const [who, again] of [
      ["runner", () => system.restartRunner()],
      ["control", () => system.startControl()],
    ] as const) {
      process.kill(system.pids[who], "SIGUSR2")
      await expect.poll(() => system.isRunning, { timeout: 30_000 }).toBe(false)
      expect(system.said).toContain("injected")
      await again()
      expect([who, await run("cat /home/user/kept")]).toEqual([who, "kept\n"])
    }
  })
})

function slowly(port: number, text: string): { readonly socket: Socket; readonly closed: Promise<unknown> } {
  const socket = connect(port, "127.0.0.1")
    .on("error", () => undefined)
    .resume()
  socket.write(text)
  return { socket, closed: once(socket, "close") }
}

function residentBytesOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024
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
