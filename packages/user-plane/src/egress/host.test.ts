import { domainToASCII } from "node:url"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Denied } from "./denied.ts"
import { canonicalHost, targetOf } from "./host.ts"

describe("a host has one spelling", () => {
  test.each([
    ["Example.COM", "example.com"],
    ["example.com.", "example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.example", "xn--bcher-kva.example"],
    ["a_b.example", "a_b.example"],
    ["例え。テスト", "xn--r8jz45g.xn--zckzah"],
  ])("%s is %s", (text, name) => expect(canonicalHost(text)).toEqual({ name, isAddress: false }))

  test.each([
    ["1.2.3.4", "1.2.3.4"],
    ["[::1]", "::1"],
    ["::FFFF:127.0.0.1", "::ffff:7f00:1"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["１２７.0.0.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
  ])("%s is the address %s", (text, name) => expect(canonicalHost(text)).toEqual({ name, isAddress: true }))

  test.each([
    "",
    ".",
    "..",
    "a..b",
    ".example.com",
    "example.com..",
    "exa mple.com",
    "allowed.com\0.evil.com",
    "allowed.com%00.evil.com",
    "allowed.com%2eevil.com",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
    "user@evil.com",
    "evil.com/allowed.com",
    "evil.com\\allowed.com",
    "evil.com#allowed.com",
    "evil.com?allowed.com",
    "evil.com\r\nHost: allowed.com",
    "\tallowed.com",
    "allowed.com\x7f",
    "-allowed.com",
    "allowed-.com",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(127)}com`,
    "a".repeat(100_000),
    // An address in disguise.
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "1.2.3.4.5",
    "256.1.1.1",
    "a.b.0x",
    "xn--a.com",
    "℀.com",
    "[::1",
    "::1]",
    "[]",
    "[1.2.3.4]",
  ])("%j is none", (text) => expect(() => canonicalHost(text)).toThrow(Denied))

  test("whatever comes out stays as it is, and means the same to the URL standard", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: "binary" }), fc.domain(), fc.ipV4(), fc.ipV6(), fc.ipV4Extended()),
        (text) => {
          let host
          try {
            host = canonicalHost(text)
          } catch (thrown) {
            expect(thrown).toBeInstanceOf(Denied)
            return
          }
          expect(canonicalHost(host.name)).toEqual(host)
          if (!host.isAddress) expect(domainToASCII(host.name)).toBe(host.name)
          expect(
            new URL(`http://${host.name.includes(":") ? `[${host.name}]` : host.name}/`).hostname.replace(
              /^\[|\]$/g,
              "",
            ),
          ).toBe(host.name)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe("host and port", () => {
  test("are told apart", () => {
    expect(targetOf("Example.com:8080")).toEqual({ name: "example.com", isAddress: false, port: 8080 })
    expect(targetOf("[::1]:443")).toEqual({ name: "::1", isAddress: true, port: 443 })
    expect(targetOf("example.com", 80).port).toBe(80)
  })

  test.each([
    "example.com",
    "example.com:0",
    "example.com:65536",
    "example.com:080",
    "example.com:80:80",
    "127.0.0.1:3000@evil",
    "a:3000@evil.example",
    "::1:80",
    "example.com:",
    "example.com: 80",
    "example.com:+80",
    ":80",
  ])("%j is refused", (text) => expect(() => targetOf(text)).toThrow(Denied))
})
