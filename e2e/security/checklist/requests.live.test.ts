import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { mebibyte, quiet, Subject } from "./subject.ts"

/** Rows of the security checklist that no other test has whole. */
describe.skipIf(process.getuid?.() !== 0)("the checklist, for requests", { timeout: 120_000 }, () => {
  let subject: Subject

  beforeAll(async () => {
    subject = await Subject.start()
  }, 120_000)
  afterAll(() => subject?.[Symbol.asyncDispose](), 120_000)

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
      const asking = subject.statusOf(`/v1/sessions/${subject.session}/exec`, { method: "POST", body }).catch(() => 429)
      expect([what, await subject.statusOf("/v1/health")]).toEqual([what, 200])
      expect([what, [200, 400, 413, 429].includes(await asking)]).toEqual([what, true])
    }
    await subject.healthy()
  })

  test("asked again and again, and at once, with one key, it is made once (PRO-10, FT-17)", async () => {
    const ask = (key: string): Promise<string> =>
      subject.json("/v1/sessions", quiet, { "idempotency-key": key }).then((one) => JSON.stringify(one))
    const together = new Set(await Promise.all(Array.from({ length: 50 }, () => ask("list-1"))))
    expect(together.size).toBe(1)
    for (let n = 0; n < 100; n++) together.add(await ask("list-1"))
    expect(together.size).toBe(1)
    const [{ id } = { id: "" }] = [...together].map((text) => JSON.parse(text) as { id: string })
    expect(await subject.statusOf(`/v1/sessions/${id}`, { method: "DELETE" })).toBeLessThan(300)
  })

  test("requests that mean two things, or too much, mean nothing (PRO-14, PRO-15, AUT-14, AUT-21)", async () => {
    const host = `Host: localhost:${subject.system.port}\r\n`
    const head = `${host}Authorization: Bearer ${subject.system.token}\r\nConnection: close\r\n`
    const cookies = Array.from({ length: 200 }, (_, n) => `Cookie: warren-sign-in=${"x".repeat(8_000)}${n}\r\n`).join(
      "",
    )
    const raw: Record<string, string> = {
      "two hosts": `GET /v1/sessions HTTP/1.1\r\n${head}Host: evil.example\r\n\r\n`,
      "two hosts, theirs first": `GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\n${head}\r\n`,
      "no host": `GET /v1/sessions HTTP/1.1\r\nAuthorization: Bearer ${subject.system.token}\r\nConnection: close\r\n\r\n`,
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
      const answer = await subject.door.say(text).catch(() => "")
      const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? "cut"
      if (!/^(4\d\d|cut)$/.test(status) || answer.includes('"items"')) taken.push([what, status])
    }
    expect(taken).toEqual([])
  })

  test("pages of others are given no leave to read (AUT-20)", async () => {
    for (const origin of ["https://evil.example", "null", `http://localhost:${subject.system.port}.evil.example`]) {
      for (const method of ["GET", "OPTIONS"]) {
        const { headers, status } = await subject.door.get("/v1/sessions", {
          method,
          headers: { origin, authorization: `Bearer ${subject.system.token}`, "access-control-request-method": "POST" },
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
})
