import { expect, test } from "vitest"
import { authorityOf, hasOwnNames } from "./authority.ts"

const names = { domain: "warren.localhost", hosts: ["localhost"] }
const nameless = { domain: "", hosts: ["localhost"] }
const at = (host: string) => ({ host, port: "", scheme: "http" as const })

test.each(["", ":80", "localhost:0", "localhost:65536", "local host", "localhost/", "user@localhost", "[::1"])(
  "%j is no host",
  (host) => expect(() => authorityOf(["Host", host], names)).toThrow("the Host is not one"),
)

test.each(["evil.example", "warren.localhost.evil.example", "evilwarren.localhost", "127.0.0.1"])(
  "%s is not served",
  (host) => expect(() => authorityOf(["Host", host], names)).toThrow("not served"),
)

test("without a domain no name below one is served", () => {
  expect(authorityOf(["Host", "localhost:7777"], nameless).port).toBe(":7777")
  for (const host of ["a.localhost", "evil.example"])
    expect(() => authorityOf(["Host", host], nameless)).toThrow("not served")
})

test("how it was reached is believed when it is said once", () => {
  const scheme = (...said: string[]): string =>
    authorityOf(["Host", "localhost", ...said.flatMap((one) => ["X-Warren-Scheme", one])], names).scheme
  expect([scheme("https"), scheme(), scheme("http"), scheme("HTTPS "), scheme("https", "https")]).toEqual([
    ...["https", "http", "http", "http", "http"],
  ])
})

test.each([
  ["warren.localhost", true],
  ["web-1.warren.localhost", true],
  ["localhost", true],
  ["[::1]", true],
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["10.0.0.1", false],
  ["machine.example", false],
])("a browser that came by %s finds previews at names of their own: %s", (host, isSo) => {
  expect(hasOwnNames(at(host), names)).toBe(isSo)
  expect(hasOwnNames(at(host), nameless)).toBe(false)
})

test("loopback leads to a public domain's names nowhere", () => {
  const isOwn = ["localhost", "127.0.0.1", "previews.example", "a.previews.example"].map((host) =>
    hasOwnNames(at(host), { domain: "previews.example", hosts: [] }),
  )
  expect(isOwn).toEqual([false, false, true, true])
})
