import { expect, test } from "vitest"
import { endToEnd, framing, valuesOf } from "./headers.ts"

const ofOneConnection = [
  "Connection",
  "Keep-Alive",
  "Proxy-Authenticate",
  "Proxy-Authorization",
  "Proxy-Connection",
  "TE",
  "Trailer",
  "Transfer-Encoding",
  "Upgrade",
]

test.each(ofOneConnection)("%s belongs to one connection and goes no further, however it is spelled", (name) => {
  for (const spelled of [name, name.toLowerCase(), name.toUpperCase()])
    expect(endToEnd(["X-Stays", "1", spelled, "x", "Accept", "*/*"])).toEqual(["X-Stays", "1", "Accept", "*/*"])
})

test("what a Connection names goes no further either, unless the message would mean something else without it", () => {
  const stays = ["Host", "a.test", "Content-Length", "3", "Content-Type", "text/plain", "X-Stays", "1"]
  const raw = [
    "X-Hop",
    "1",
    ...stays,
    "Connection",
    "close, X-HOP",
    "connection",
    " content-length,host,content-type,x-other",
  ]
  expect(endToEnd([...raw, "x-other", "2"])).toEqual(stays)
})

test("what is dropped on request is dropped by its name in small letters", () => {
  expect(endToEnd(["Cookie", "a", "Accept", "b", "COOKIE", "c"], (name) => name === "cookie")).toEqual(["Accept", "b"])
})

test("a header's values are those of its own name, in their order", () => {
  expect(valuesOf(["Host", "a", "X-Host", "b", "HOST", "c"], "host")).toEqual(["a", "c"])
})

test("how the end of a body is told is said again in our words", () => {
  expect(framing(["transfer-encoding", "gzip, chunked"])).toEqual(["Transfer-Encoding", "chunked"])
  expect(framing(["Content-Length", "3"])).toEqual([])
})
