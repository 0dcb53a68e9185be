import { ManualClock } from "@warren/base/clock.ts"
import { describe, expect, test } from "vitest"
import type { Address } from "./address.ts"
import { Admissions, type Admission } from "./admission.ts"
import { credentialsOf } from "./credentials.ts"
import { detourOf, setCookie, type Detour } from "./visit.ts"

const at = (scheme: "http" | "https", prefix: string): Address => ({
  mode: prefix === "" ? "host" : "path",
  authority: { host: "web-1.warren.localhost", port: ":7777", scheme },
  session: "ses_00000000000000000000" as Address["session"],
  target: "web",
  prefix,
  path: "/",
  query: "",
})
const flags = (cookie: string): string[] => cookie.split("; ").filter((part) => !part.startsWith("Max-Age="))

test("a cookie is for one host and one preview's paths, for no script, and for no other site", () => {
  const [first, ...http] = flags(setCookie(at("http", ""), "value"))
  expect([first, ...http]).toEqual(["gateway_session=value", "Path=/", "HttpOnly", "SameSite=Lax"])
  expect(flags(setCookie(at("https", "/s/ses_1/t/web"), "value"))).toEqual([
    ...["gateway_session=value", "Path=/s/ses_1/t/web/", "HttpOnly", "SameSite=Lax", "Secure"],
  ])
  expect(setCookie(at("https", ""), "value")).toMatch(/; Max-Age=\d+;/)
})

test("in a frame of another site it is for that site's frames alone", () => {
  expect(flags(setCookie(at("https", ""), "value", true))).toEqual([
    ...["gateway_session=value", "Path=/", "HttpOnly", "SameSite=None", "Secure", "Partitioned"],
  ])
})

describe("a browser is sent", () => {
  const domain = "warren.localhost"
  const own = `web-00000000000000000000.${domain}`
  const prefix = "/s/ses_00000000000000000000/t/web"
  const going = ["Sec-Fetch-Mode", "navigate"]
  const token = "?token=lnk_x"

  interface Case {
    readonly by?: "path" | "host"
    readonly host?: string
    readonly how?: Admission["how"]
    readonly method?: string
    readonly raw?: readonly string[]
    readonly query?: string
  }
  const sent = ({ by = "host", host, how = "url", method = "GET", raw = [], query = "" }: Case): Detour | undefined => {
    const admissions = new Admissions({
      clock: new ManualClock(),
      tunnels: { find: () => undefined, isLink: () => false },
      verify: () => expect.unreachable(),
    })
    const [base, name] = by === "path" ? [at("http", prefix), domain] : [at("http", ""), own]
    const address = { ...base, authority: { ...base.authority, host: host ?? name }, path: "/a", query }
    const grant = { user: "alice", session: address.session, target: "web" }
    const admission = { how, grant, port: 80, builtIn: undefined, tunnel: undefined }
    const credentials = credentialsOf([], query)
    return detourOf({ method, raw, address, credentials, admission, names: { domain, hosts: [] } }, admissions)
  }
  const cookie = /^gateway_session=[\w-]{43}; .*SameSite=Lax$/

  test("nowhere by a request that has no token in its URL", () => {
    for (const how of ["bearer", "cookie", "public"] as const) {
      expect(sent({ how })).toBeUndefined()
      expect(sent({ how, by: "path" })).toBeUndefined()
      expect(sent({ how, raw: going, query: "?token=of-the-app" })).toBeUndefined()
      if (how !== "public") expect(sent({ how, by: "path", raw: going })).toBeUndefined()
    }
  })

  test("to the same place without the token, with a cookie where the token let it in", () => {
    for (const by of ["host", "path"] as const) {
      const location = `${by === "path" ? prefix : ""}/a?b=1`
      expect(sent({ by, query: `${token}&b=1` })).toEqual({
        ...{ status: 303, location, setCookie: expect.stringMatching(cookie) },
      })
      expect(sent({ by, query: `${token}&b=1`, how: "cookie" })).toEqual({ status: 303, location })
    }
    expect(sent({ query: token, raw: going })).toMatchObject({ location: "/a" })
    const framed = ["Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"]
    expect(sent({ query: token, raw: framed })?.setCookie).toMatch(/; SameSite=None; Secure; Partitioned$/)
  })

  test("to the preview's own name, when a person comes by its path, with a ticket where they were let in", () => {
    const asked = { by: "path", raw: going } as const
    const ticket = (query: string): RegExp =>
      new RegExp(`^http://${own}:7777/a${query.replace("?", "\\?")}token=tkt_[\\w-]{43}$`)
    for (const [query, more] of [
      [token, "?"],
      [`${token}&b=1`, "?b=1&"],
    ] as const)
      expect(sent({ ...asked, query })).toEqual({ status: 303, location: expect.stringMatching(ticket(more)) })
    const there = { status: 307, location: `http://${own}:7777/a?b=1` }
    for (const method of ["GET", "POST"])
      expect(sent({ ...asked, how: "public", method, query: "?b=1" })).toEqual(there)
    // By a name from which that one is not found, they stay where they are.
    expect(sent({ ...asked, host: "10.0.0.7", query: token })).toMatchObject({ location: `${prefix}/a` })
    expect(sent({ ...asked, host: "10.0.0.7", how: "public" })).toBeUndefined()
  })

  test("nowhere by a change: a token in a URL is for opening a page", () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"])
      expect(() => sent({ query: token, method })).toThrow("for opening a page")
    for (const method of ["GET", "HEAD"]) expect(sent({ query: token, method })).toMatchObject({ status: 303 })
  })
})
