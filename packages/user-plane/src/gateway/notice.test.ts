import { expect, test } from "vitest"
import { noticeAnswer } from "./notice.ts"

const headersOf = (accept: string, framers: readonly string[] = []): Record<string, string> => {
  const { headers } = noticeAnswer({ status: 404, title: "<b>", text: "\"&'" }, ["Accept", accept], framers)
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), headers[at + 1] ?? ""]] : []))
  return Object.fromEntries(pairs) as Record<string, string>
}

test.each([
  ["text/html", "text/html; charset=utf-8"],
  ["*/*", "text/plain; charset=utf-8"],
])("what the gateway says itself runs nothing and is kept by nobody: %s", (accept, type) => {
  const headers = headersOf(accept, ["http://localhost:7777"])
  expect(headers["content-security-policy"]).toMatch(
    /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; frame-ancestors 'self' http:\/\/localhost:7777$/,
  )
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-type": type,
  })
})

test("what it says is text, whatever is in it", () => {
  const { body } = noticeAnswer({ status: 404, title: "<b>", text: "\"&'", hint: "<i>" }, ["Accept", "text/html"])
  expect(body).not.toMatch(/<b>|<i>/)
  expect(body).toContain("&lt;b&gt;")
  expect(body).toContain("&quot;&amp;&#39;")
})
