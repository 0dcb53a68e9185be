import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { askedOf, labelOf, portOf, prefixOf } from "./address.ts"
import { authorityOf } from "./authority.ts"

const names = { domain: "warren.localhost", hosts: ["localhost", "127.0.0.1", "[::1]"] }
const session = "ses_0123456789abcdefghjk"
const at = (host: string) => authorityOf(["Host", host], names)
const byPath = (target: string) => askedOf(target, at("localhost:80"), names)
const byHost = (target: string) => askedOf(target, at("web-0123456789abcdefghjk.warren.localhost"), names)

describe("an address", () => {
  test("by path", () => {
    expect(byPath(`/s/${session}/t/3000/a?b=/../c`)).toMatchObject({
      address: { mode: "path", session, target: "3000", prefix: `/s/${session}/t/3000`, path: "/a", query: "?b=/../c" },
    })
    expect(byPath(`/s/${session}/vscode/`)).toMatchObject({
      address: { target: "vscode", prefix: `/s/${session}/vscode`, path: "/" },
    })
    expect(byPath(`/s/${session}/t/web?x`)).toEqual({ kind: "moved", to: `/s/${session}/t/web/?x` })
    expect(byPath("/health?x")).toEqual({ kind: "health" })
    expect(byPath("/api/tunnels")).toEqual({ kind: "tunnels", name: undefined })
    expect(byPath("/api/tunnels/web")).toEqual({ kind: "tunnels", name: "web" })
  })

  test("by a host name of its own, where every path is the program's", () => {
    expect(byHost("/health")).toMatchObject({
      address: { mode: "host", session, target: "web", prefix: "", path: "/health" },
    })
    expect(byHost("/@scope%2fname//x;y?z")).toMatchObject({ address: { path: "/@scope%2fname//x;y", query: "?z" } })
  })

  const everywhere = [
    ...[
      "/../x",
      "/a/../b",
      "/a/..",
      "/.",
      "/a/./b",
      "/%2e%2e/x",
      "/.%2E/x",
      "/a/%2e",
      "/..%2fx",
      "/%2e%2e%2fx",
      "/..;/x",
    ],
    ...[
      "/a\\..\\b",
      "/a%5c..%5cb",
      "/a%5C",
      "/a#b",
      "/%",
      "/%zz",
      "/%2",
      "/a%00b",
      "/a%0ab",
      "/a%0D",
      "/a b",
      "/\x7f",
      "/ü",
    ],
    ...[
      "/%252e%252e/x",
      "/%252f",
      "/%255c",
      "//evil.example/",
      "/%2fevil.example/",
      "",
      "*",
      "http://localhost/x",
      "x",
    ],
  ]
  test.each(everywhere)("is refused wherever it is asked for: %j", (rest) => {
    expect(() => byHost(rest)).toThrow()
    expect(() => byPath(rest.startsWith("/") ? `/s/${session}/t/3000${rest}` : rest)).toThrow()
  })

  test.each([
    ...["//x", "/a//b", "/a%2fb", "/a%2Fb", "/a;b", "/%2e", "/a%2eb"].map((rest) => `/s/${session}/t/3000${rest}`),
    ...[`//s/${session}/t/3000/`, `/s//${session}/t/3000/`, `/s/${session}/t/3000/..%2f..%2f..%2fses_1/`],
    ...[
      `/s/${session}/t/`,
      `/s/${session}/`,
      "/s/",
      "/",
      "/api/tunnels/",
      "/api/tunnels/a/b",
      "/api",
      "/ws",
      `/S/${session}/t/3000/`,
    ],
    ...[`/s/${session.toUpperCase()}/t/3000/`, `/s/${session}%20/t/3000/`, "/s/ses_short/t/3000/", "/s/alice/t/3000/"],
  ])("is refused where the path says whose it is: %s", (target) => {
    expect(() => byPath(target)).toThrow()
  })

  test.each([
    ...[
      "3000@evil.example",
      "@evil",
      "3000#",
      "03000",
      "0",
      "65536",
      "99999",
      "-1",
      "+80",
      "3000.",
      "3e3",
      "0x50",
      "٣٠٠٠",
      "3000:80",
    ],
    ...["3000%40evil", "80,81", "Web", "web_1", "-web", "web-", "wéb", "xn--", "a".repeat(33), "localhost:80", "[::1]"],
  ])("has a port or a name that is one: not %s", (target) => {
    expect(portOf(target)).toBeUndefined()
    expect(() => byPath(`/s/${session}/t/${target}/`)).toThrow()
  })

  test("that is taken is passed on byte for byte, and is of the session that is named", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 40 }), (rest) => {
        const target = `/s/${session}/t/3000/${rest}`
        let asked
        try {
          asked = byPath(target)
        } catch {
          return
        }
        if (asked.kind !== "inside") throw new Error("it is something else")
        const { prefix, path, query, ...address } = asked.address
        expect(`${prefix}${path}${query}`).toBe(target)
        expect(address.session).toBe(session)
        // Whoever reads it by the rules of URLs sees the same path.
        expect(new URL(`http://x${target}`.replace(/#.*/, "")).pathname).toBe(`${prefix}${path}`)
      }),
    )
  })

  test("is found by its label and its prefix", () => {
    expect(labelOf(session, "web")).toBe("web-0123456789abcdefghjk")
    expect(prefixOf(session, "web")).toBe(`/s/${session}/t/web`)
  })
})

describe("a host", () => {
  test.each([
    "localhost",
    "LOCALHOST:8080",
    "127.0.0.1:1",
    "[::1]:80",
    "warren.localhost",
    "a-b.warren.localhost:65535",
  ])("is served: %s", (host) => expect(at(host).host).toBe(host.toLowerCase().replace(/:\d+$/, "")))

  test.each([
    ...[
      "evil.example",
      "10.0.0.1",
      "localhost.",
      "localhost.evil.example",
      "evilwarren.localhost",
      "warren.localhost.evil.example",
    ],
    ...[
      "[::2]",
      "127.0.0.2",
      "user@localhost",
      "localhost:0",
      "localhost:080",
      "localhost:65536",
      "localhost:",
      "",
      " ",
      "local host",
    ],
    ...["a..warren.localhost", ".warren.localhost", "localhost/x", "localhost,localhost", "lоcalhost"],
  ])("is not: %j", (host) => {
    expect(() => at(host)).toThrow()
  })

  test("is exactly one", () => {
    expect(() => authorityOf([], names)).toThrow("exactly one")
    expect(() => authorityOf(["Host", "localhost", "host", "localhost"], names)).toThrow("exactly one")
  })
})
