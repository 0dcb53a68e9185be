import { expect, test } from "vitest"
import { valuesOf } from "../egress/headers.ts"
import type { Address } from "./address.ts"
import { bodyHead, hasBody, requestHead } from "./request-head.ts"

const authority = { host: "web-x.warren.localhost", port: ":8080", scheme: "http" } as const
const address = { mode: "host", authority, prefix: "" } as Address
const lie = "203.0.113.9"

test.each([
  ...["Expect", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Real-IP"],
  ...["X-Warren-Anything", "x_forwarded_for", "X_Real_IP", "X_Warren_User"],
])("what a browser says as %s does not reach the program", (name) => {
  const head = requestHead([name, lie, "X-Kept", "y"], address)
  expect(head).not.toContain(lie)
  expect(valuesOf(head, "x-kept")).toEqual(["y"])
})

test("the program hears the name and the scheme the browser used, from us alone", () => {
  const head = requestHead(["Host", "evil.example", "X-Forwarded-Host", "evil.example"], address)
  for (const name of ["host", "x-forwarded-host"]) expect(valuesOf(head, name)).toEqual(["web-x.warren.localhost:8080"])
  expect(valuesOf(head, "x-forwarded-proto")).toEqual(["http"])
})

test("the visitor's address is what the relay says, if it is one", () => {
  const said = (client: string): string[] => [
    ...valuesOf(requestHead(["x-warren-client", client], address), "x-forwarded-for"),
  ]
  expect(said("192.0.2.7")).toEqual(["192.0.2.7"])
  expect(said("192.0.2.7, 10.0.0.1")).toEqual([])
})

const chunked = ["Transfer-Encoding", "chunked"]

test("where a body ends is said as it was said to us; a change without one says that it has none", () => {
  for (const method of ["POST", "PUT", "PATCH"]) expect(bodyHead([], method)).toEqual(["Content-Length", "0"])
  for (const method of ["GET", "HEAD", "DELETE", "OPTIONS"]) expect(bodyHead([], method)).toEqual([])
  for (const method of ["GET", "POST"]) {
    expect(bodyHead(chunked, method)).toEqual(chunked)
    // It is passed on with the other headers.
    expect(bodyHead(["content-length", "3"], method)).toEqual([])
  }
})

test("a request has a body if it says so", () => {
  expect([[], ["Content-Length", "0"], ["Content-Length", "3"], chunked].map(hasBody)).toEqual([
    ...[false, false, true, true],
  ])
})
