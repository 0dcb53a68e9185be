import { describe, expect, test } from "vitest"
import { answerHead, bodyHead, requestHead, valuesOf } from "./relayed-head.ts"

const visitor = { host: "web.warren.localhost", scheme: "https", address: "::ffff:10.1.2.3" } as const
const ofConnection = [
  ...["Connection", "HTTP2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection"],
  ...["TE", "Trailer", "Transfer-Encoding", "Upgrade"],
]
const ofMessage = ["Content-Length", "Content-Type", "Cookie", "Authorization", "Origin"]

describe("the head of a request on its way to a gateway", () => {
  test.each(ofConnection)("has no %s: that belongs to one connection", (name) => {
    expect(valuesOf(requestHead([name, "x", "A", "b"], visitor), name.toLowerCase())).toEqual([])
    expect(Object.keys(answerHead([name, "x", "A", "b"]).headers)).toEqual(["a"])
  })

  test("has nothing that the client says belongs to the connection", () => {
    const raw = ["Connection", "close, X-Drop ,x-also", "x-drop", "1", "X-Also", "2", "X-Kept", "3"]
    expect(requestHead(raw, visitor).filter((one) => /^x-/i.test(one))).toEqual([
      ...["X-Kept", "X-Warren-Scheme", "X-Warren-Client"],
    ])
  })

  test.each(ofMessage)("has its %s whatever the client says of it", (name) => {
    const head = requestHead(["Connection", name, name, "x"], visitor)
    expect(valuesOf(head, name.toLowerCase())).toEqual(["x"])
  })

  test("says who came, and how, in our words alone", () => {
    const lies = ["Host", "evil", ":authority", "evil", "X-Warren-Client", "6.6.6.6", "x_warren_scheme", "http"]
    const more = ["x-warren_refused", "y", "Connection", "Host", "A", "b"]
    expect(requestHead([...lies, ...more], visitor)).toEqual([
      ...["Host", "web.warren.localhost", "A", "b", "X-Warren-Scheme", "https", "X-Warren-Client", "10.1.2.3"],
    ])
    expect(requestHead([], { ...visitor, address: "::1" }).at(-1)).toBe("::1")
  })
})

test("where a body ends is said anew on the next connection", () => {
  const [chunked, h2] = [
    ["Transfer-Encoding", "chunked"],
    [":method", "POST"],
  ]
  expect(bodyHead(["Content-Length", "3", ...h2], "POST")).toEqual([])
  expect([bodyHead(chunked, "GET"), bodyHead(["Transfer-Encoding", "gzip, chunked"], "POST")]).toEqual([
    ...[chunked, chunked],
  ])
  for (const method of ["POST", "PUT", "PATCH"]) {
    expect(bodyHead(h2, method)).toEqual(chunked)
    expect(bodyHead([], method)).toEqual([])
  }
  for (const method of ["GET", "HEAD", "DELETE", "OPTIONS"]) expect(bodyHead(h2, method)).toEqual([])
})

test("an answer keeps all of its values, and what the gateway says to us is for us", () => {
  const raw = ["Set-Cookie", "a=1", "X-Warren-Refused", "forbidden", "set-cookie", "b=2", "SET-COOKIE", "c=3", "A", "b"]
  expect(answerHead(raw)).toEqual({ headers: { "set-cookie": ["a=1", "b=2", "c=3"], a: "b" }, refused: "forbidden" })
  expect(answerHead(["A", "b"]).refused).toBeUndefined()
})
