import { describe, expect, test } from "vitest"
import type { Address } from "./address.ts"
import { answerHead, movedTo } from "./answer-head.ts"
import { narrowedCookie } from "./set-cookie.ts"

const authority = { host: "localhost", port: ":8080", scheme: "http" } as const
const byPath = { mode: "path", authority, prefix: "/s/x/t/web" } as Address
const byHost = { mode: "host", authority: { ...authority, host: "web-x.warren.localhost" }, prefix: "" } as Address
const port = 3000

describe("a program's cookie", () => {
  test.each([
    ["a=1", "a=1", "a=1"],
    ["a=1; Path=/", "a=1; Path=/s/x/t/web/", "a=1; Path=/"],
    ["a=1; Path=/s/x/t/web/app", "a=1; Path=/s/x/t/web/app", "a=1; Path=/s/x/t/web/app"],
    ["a=1; Path=/s/y/t/web", "a=1; Path=/s/x/t/web/s/y/t/web", "a=1; Path=/s/y/t/web"],
    ["a=1;path=/b;Path=/c", "a=1; Path=/s/x/t/web/c", "a=1; Path=/c"],
    ["a=1; path=nonsense", "a=1", "a=1"],
    ["a=1; Domain=localhost; Secure; DOMAIN = .localhost", "a=1; Secure", "a=1; Secure"],
    ["gateway_session=1", undefined, undefined],
    ["Gateway_Session =1; Path=/", undefined, undefined],
    ["__Host-gateway_session=1", undefined, undefined],
    ["__secure-gateway_session=1", undefined, undefined],
    ["no equals sign", undefined, undefined],
    ["=gateway_session=1", "=gateway_session=1", "=gateway_session=1"],
  ])("%s", (said, path, host) => {
    expect([narrowedCookie(said, byPath.prefix), narrowedCookie(said, "")]).toEqual([path, host])
  })
})

describe("a redirect", () => {
  test.each([
    ["/login", "/s/x/t/web/login", "/login"],
    ["login", "login", "login"],
    ["?a", "?a", "?a"],
    ["//evil.example/", "//evil.example/", "//evil.example/"],
    ["/\\evil.example", "/\\evil.example", "/\\evil.example"],
    ["https://example.com/x", "https://example.com/x", "https://example.com/x"],
    ["http://localhost:3000/x?y", "http://localhost:8080/s/x/t/web/x?y", "http://web-x.warren.localhost:8080/x?y"],
    ["http://127.0.0.1:3000", "http://localhost:8080/s/x/t/web/", "http://web-x.warren.localhost:8080/"],
    ["http://localhost:3001/", "http://localhost:3001/", "http://localhost:3001/"],
    ["http://localhost:8080/x", "http://localhost:8080/s/x/t/web/x", "http://localhost:8080/x"],
  ])("to %s", (to, path, host) => {
    expect([movedTo(to, { address: byPath, port }), movedTo(to, { address: byHost, port })]).toEqual([path, host])
  })
})

describe("an answer", () => {
  const valuesOf = (head: string[], name: string): string[] =>
    head.filter((_, i) => i % 2 === 1 && head[i - 1]?.toLowerCase() === name)

  test("by path is sandboxed: its pages are nobody's, not even its own", () => {
    const head = answerHead(["Content-Security-Policy", "script-src 'self'"], {
      address: byPath,
      port,
      isPublic: false,
      framers: [],
    })
    const [own, ours] = valuesOf(head, "content-security-policy")
    expect(own).toBe("script-src 'self'")
    expect(ours).toMatch(/^sandbox /)
    expect(ours).not.toContain("allow-same-origin")
    expect(ours).not.toContain("allow-top-navigation")
  })

  test("by host may be shown by itself and by Warren, and by a public one's rules be read by others", () => {
    const raw = ["Access-Control-Allow-Origin", "*", "Referrer-Policy", "no-referrer"]
    const answered = { address: byHost, port, framers: ["http://warren.localhost:8080"] }
    const mine = answerHead(raw, { ...answered, isPublic: false })
    expect(valuesOf(mine, "content-security-policy")).toEqual(["frame-ancestors 'self' http://warren.localhost:8080"])
    expect(valuesOf(mine, "access-control-allow-origin")).toEqual([])
    expect(valuesOf(mine, "cross-origin-resource-policy")).toEqual(["same-origin"])
    expect(valuesOf(mine, "referrer-policy")).toEqual(["no-referrer"])
    const silent = answerHead([], { ...answered, isPublic: false })
    expect(valuesOf(silent, "referrer-policy")).toEqual(["same-origin"])
    expect(valuesOf(silent, "cross-origin-opener-policy")).toEqual(["same-origin-allow-popups"])
    expect(valuesOf(silent, "x-content-type-options")).toEqual(["nosniff"])
    const everybodys = answerHead(raw, { ...answered, isPublic: true })
    expect(valuesOf(everybodys, "access-control-allow-origin")).toEqual(["*"])
    expect(valuesOf(everybodys, "cross-origin-resource-policy")).toEqual([])
  })

  test.each([
    ...["Service-Worker-Allowed", "Clear-Site-Data", "Strict-Transport-Security", "Public-Key-Pins"],
    ...["Public-Key-Pins-Report-Only", "Alt-Svc", "NEL", "Report-To", "Reporting-Endpoints", "X-Warren-Anything"],
    "X-Frame-Options",
  ])("does not say %s, which would hold for more than its own pages", (name) => {
    for (const address of [byPath, byHost]) {
      const head = answerHead([name, "x", "X-Kept", "y"], { address, port, isPublic: true, framers: [] })
      expect([valuesOf(head, name.toLowerCase()), valuesOf(head, "x-kept")]).toEqual([[], ["y"]])
    }
  })
})
