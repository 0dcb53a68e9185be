import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { connect as connectHttp2, constants, type ClientHttp2Session, type OutgoingHttpHeaders } from "node:http2"
import { request as requestHttps } from "node:https"
import { connect as connectTls } from "node:tls"
import { freePort } from "@warren/base/testing/free-port.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { bundleProgram } from "@warren/base/testing/program.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"

let folder: TempFolder
let file: string
beforeAll(async () => {
  folder = await TempFolder.make()
  file = await bundleProgram(new URL("./main.ts", import.meta.url), folder)
})
afterAll(() => folder[Symbol.asyncDispose]())

function makeCertificate(name: string): { cert: string; key: string } {
  const [cert, key] = [folder.at(`${name}.pem`), folder.at(`${name}.key`)]
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
  const about = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,DNS:warren.example", "-days", "2"]
  execFileSync("openssl", ["req", "-x509", "-nodes", ...curve, ...about, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  })
  return { cert, key }
}

/** The real program with a certificate. */
class Secured implements AsyncDisposable {
  readonly port: number
  readonly home: string
  readonly cert: string
  said = ""
  readonly #child: ChildProcess

  private constructor(port: number, home: string, settings: Readonly<Record<string, string>>) {
    this.port = port
    this.home = home
    this.cert = settings["WARREN_TLS_CERT"] ?? ""
    const env = { PATH: process.env["PATH"], WARREN_HOME: home, WARREN_PORT: String(port), ...settings }
    this.#child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.said += chunk.toString()))
    }
  }

  static async start(name: string, settings: Readonly<Record<string, string>>): Promise<Secured> {
    const secured = new Secured(await freePort(), folder.at(`home-${name}`), settings)
    await eventually(() => secured.said.includes("control.ready") || secured.#child.exitCode !== null)
    return secured
  }

  get token(): string {
    return readFileSync(`${this.home}/control/token`, "utf8").trim()
  }

  http2(): ClientHttp2Session {
    return connectHttp2(`https://localhost:${this.port}`, { ca: readFileSync(this.cert) })
  }

  async ask11(path: string, headers: Record<string, string> = {}, body?: object) {
    const asked = requestHttps(`https://localhost:${this.port}${path}`, {
      ca: readFileSync(this.cert),
      agent: false,
      servername: "localhost",
      method: body ? "POST" : "GET",
      headers,
    })
    asked.end(body ? JSON.stringify(body) : undefined)
    const [answer] = await once(asked, "response")
    let text = ""
    for await (const chunk of answer) text += chunk
    return { status: answer.statusCode, headers: answer.headers, text, version: answer.httpVersion }
  }

  /** The name in the certificate that is shown to a new connection. */
  async shown(): Promise<string> {
    const socket = connectTls({ port: this.port, host: "127.0.0.1", rejectUnauthorized: false })
    await once(socket, "secureConnect")
    const { CN } = socket.getPeerCertificate().subject
    socket.destroy()
    return String(CN)
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const gone = once(this.#child, "exit")
    this.#child.kill(signal)
    await gone
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL")
  }
}

async function ask2(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: object) {
  const stream = session.request(headers)
  stream.end(body ? JSON.stringify(body) : undefined)
  const [answer] = await once(stream, "response")
  let text = ""
  for await (const chunk of stream) text += chunk
  return { status: answer[":status"], headers: answer, text }
}

const withTls = ({ cert, key }: { cert: string; key: string }) => ({ WARREN_TLS_CERT: cert, WARREN_TLS_KEY: key })

describe("a control plane with a certificate", () => {
  test("speaks HTTP/2 and HTTP/1.1, with WebSockets, and ends in order", async () => {
    await using control = await Secured.start("both", withTls(makeCertificate("both")))
    const session = control.http2()
    const authorization = `Bearer ${control.token}`
    const account = await ask2(session, { ":path": "/v1/account", authorization })
    expect([account.status, JSON.parse(account.text)]).toMatchObject([200, { via: "token-file" }])
    const made = { ":path": "/v1/tokens", ":method": "POST", authorization }
    expect((await ask2(session, made, { label: "two" })).status).toBe(201)
    const wrong = await ask2(session, { ":path": "/v1/account", ":authority": "evil.example", authorization })
    expect(wrong.status).toBe(403)
    const old = await control.ask11("/v1/account", { authorization })
    expect([old.status, old.version, old.headers["strict-transport-security"]]).toEqual([200, "1.1", undefined])

    const url = `wss://localhost:${control.port}/v1/sessions/ses_0123456789abcdefghjk/exec`
    const socket = new WebSocket(url, { ca: readFileSync(control.cert), headers: { authorization } })
    await once(socket, "open")
    socket.send(JSON.stringify({ argv: ["true"] }))
    const [said] = await once(socket, "message")
    expect(JSON.parse(String(said))).toMatchObject({ fault: { code: "unavailable" } })
    if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close")

    const over = once(session, "close")
    expect(await control.end("SIGTERM")).toBe(0)
    await over
  })

  test("curl asks over HTTP/2", async () => {
    await using control = await Secured.start("curl", withTls(makeCertificate("curl")))
    const url = `https://localhost:${control.port}/health`
    const shown = execFileSync("curl", [
      "-s",
      "-m",
      "20",
      "--http2",
      "--cacert",
      control.cert,
      "-w",
      " %{http_version}",
      url,
    ])
    expect(shown.toString()).toMatch(/"status":"ok".* 2$/)
  })

  test("its cookies are for this host only, and its public name is held to TLS", async () => {
    const settings = { ...withTls(makeCertificate("name")), WARREN_PUBLIC_URL: "https://warren.example" }
    await using control = await Secured.start("name", settings)
    await eventually(() => control.said.includes("https://warren.example/join#"))
    const code = /\/join#([\w-]{43})/.exec(control.said)?.[1]
    const headers = { host: "warren.example", origin: "https://warren.example" }
    const joined = await control.ask11("/v1/invites/redeem", headers, { code })
    expect([joined.status, joined.text]).toEqual([200, expect.any(String)])
    expect(joined.headers["set-cookie"]?.[0]).toMatch(/^__Host-warren-sign-in=.*; Secure/)
    expect(joined.headers["strict-transport-security"]).toBe("max-age=31536000")
  })

  test("a renewed certificate is shown without a restart; nonsense is not", async () => {
    const pair = makeCertificate("before")
    await using control = await Secured.start("renewed", withTls(pair))
    expect(await control.shown()).toBe("before")
    writeFileSync(pair.cert, "nonsense")
    await eventually(() => control.said.includes("tls.unusable"))
    expect(await control.shown()).toBe("before")
    const next = makeCertificate("after")
    renameSync(next.cert, pair.cert)
    renameSync(next.key, pair.key)
    await eventually(() => control.said.includes("tls.renewed"))
    expect(await control.shown()).toBe("after")
  })

  test.each([
    ["a certificate without its key", () => ({ WARREN_TLS_CERT: makeCertificate("alone").cert })],
    ["another's key", () => withTls({ cert: makeCertificate("one").cert, key: makeCertificate("other").key })],
    [
      "a public address without TLS",
      () => ({ ...withTls(makeCertificate("plain")), WARREN_PUBLIC_URL: "http://a.example" }),
    ],
  ])("does not start with %s", async (name, settings) => {
    await using control = await Secured.start(name.replaceAll(" ", "-").replaceAll("'", ""), settings())
    expect(await control.end("SIGKILL")).toBe(1)
  })

  test("answers a certificate authority from the folder of an ACME client, under any name", async () => {
    const acme = folder.at("acme")
    mkdirSync(acme)
    writeFileSync(`${acme}/tok_en-1`, "tok_en-1.thumb")
    writeFileSync(folder.at("beside"), "secret")
    await using control = await Secured.start("acme", { ...withTls(makeCertificate("acme")), WARREN_ACME_FOLDER: acme })
    const place = "/.well-known/acme-challenge"
    const found = await control.ask11(`${place}/tok_en-1`, { host: "new.example" })
    expect([found.status, found.text]).toEqual([200, "tok_en-1.thumb"])
    for (const path of ["none", "..%2Fbeside", "%2e%2e%2fbeside", ""]) {
      expect((await control.ask11(`${place}/${path}`)).status).toBe(404)
    }
    expect((await control.ask11("/v1/account", { host: "new.example" })).status).toBe(403)
  })

  test("a connection over HTTP/2 that stays does not keep it from ending", async () => {
    await using control = await Secured.start("stays", { ...withTls(makeCertificate("stays")), WARREN_DRAIN_S: "0" })
    const session = control.http2()
    session.on("error", () => undefined)
    await ask2(session, { ":path": "/health" })
    const feed = session.request({ ":path": "/v1/sessions/events", authorization: `Bearer ${control.token}` })
    feed.on("error", () => undefined)
    expect(await control.end("SIGTERM")).toBe(0)
    feed.close(constants.NGHTTP2_CANCEL)
    session.destroy()
  })
})
