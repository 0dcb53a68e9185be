import { describe, expect, test } from "vitest"
import { guardBrowser, isFramed, isNavigation } from "./browser-guard.ts"

const authority = { host: "web-1.warren.localhost", port: ":7777", scheme: "http" as const }
const own = "http://web-1.warren.localhost:7777"
const foreign = "http://evil.example"

interface Case {
  readonly method?: string
  readonly isSocket?: boolean
  readonly isByCookie?: boolean
  readonly isSandboxed?: boolean
}

const isLetIn = (headers: readonly string[], asked: Case = {}): boolean => {
  try {
    guardBrowser({
      raw: headers,
      method: "GET",
      authority,
      isSocket: false,
      isByCookie: true,
      isSandboxed: false,
      ...asked,
    })
    return true
  } catch {
    return false
  }
}

describe("what a page has a browser do", () => {
  const socket = { isSocket: true }
  test.each([
    [[], socket, false],
    [["Origin", own], socket, true],
    [["Origin", foreign], socket, false],
    [["Origin", "null"], socket, false],
    [["Origin", own, "Origin", own], socket, false],
    [["Origin", `${own}.evil.example`], socket, false],
    [[], { ...socket, isByCookie: false }, true],
    [["Origin", own], { ...socket, isByCookie: false }, true],
    [["Origin", foreign], { ...socket, isByCookie: false }, false],
  ])("a WebSocket with %j %j: %s", (headers, asked, isIn) => expect(isLetIn(headers, asked)).toBe(isIn))

  const site = (value: string, ...more: string[]): string[] => ["Sec-Fetch-Site", value, ...more]
  const going = ["Sec-Fetch-Mode", "navigate"]
  test.each([
    [[], {}, true],
    [site("same-origin"), {}, true],
    [site("none"), {}, true],
    [site("same-site"), {}, false],
    [site("cross-site"), {}, false],
    [["Sec-Fetch-Site", "none", "Sec-Fetch-Site", "none"], {}, false],
    [site("cross-site", ...going), {}, true],
    [site("cross-site", "Sec-Fetch-Mode", "cors"), {}, false],
    [site("cross-site"), { isSandboxed: true }, true],
    [site("cross-site"), { isByCookie: false }, true],
    [site("cross-site"), { method: "HEAD" }, false],
    [site("cross-site"), { method: "OPTIONS" }, false],
  ])("a look with %j %j: %s", (headers, asked, isIn) => expect(isLetIn(headers, asked)).toBe(isIn))

  test.each([
    [[], false],
    [["Origin", own], true],
    [["Origin", foreign], false],
    [["Origin", "null"], false],
    [site("same-origin"), true],
    [site("same-origin", "Origin", foreign), false],
    [site("same-site"), false],
    [site("none"), false],
    [site("cross-site", ...going), false],
  ])("a change with %j: %s", (headers, isIn) => {
    expect(isLetIn(headers, { method: "POST" })).toBe(isIn)
    expect(isLetIn(headers, { method: "DELETE", isSandboxed: true })).toBe(isIn)
    expect(isLetIn(headers, { method: "POST", isByCookie: false })).toBe(true)
  })

  test("is known to be a person's way somewhere, or a frame of another site, by what the browser says alone", () => {
    expect([isNavigation(going), isNavigation([...going, ...going]), isNavigation([])]).toEqual([true, false, false])
    const into = (dest: string): string[] => ["Sec-Fetch-Dest", dest]
    expect(
      ["frame", "iframe", "document", "xframe", "iframes"].map((dest) => isFramed(site("cross-site", ...into(dest)))),
    ).toEqual([true, true, false, false, false])
    expect([isFramed(site("same-site", ...into("iframe"))), isFramed(site("cross-site"))]).toEqual([false, false])
  })
})
