import { generateKeyPairSync } from "node:crypto"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { credentialsOf, isOurCookieName, withoutCredentials } from "./credentials.ts"

const { privateKey } = generateKeyPairSync("ed25519")
const facts = { user: "alice", session: "ses_00000000000000000000", lifeS: 60, now: 1_700_000_000_000 }
const token = signGatewayToken(privateKey, facts)
const ours = [token, "tkt_a-ticket", "lnk_a-link"]
const theirs = ["of-the-app", "eyJhbGciOiJIUzI1NiJ9.e30.x", "xtkt_a", "LNK_a", `x${token}`]

const bearer = (value: string): string[] => ["Authorization", `Bearer ${value}`]
const shown = (raw: readonly string[], query = "") => credentialsOf(raw, query)

describe("what a request brings to be let in with", () => {
  test.each(ours)("as a bearer, ours is for us and does not go inside: %s", (value) => {
    for (const raw of [bearer(value), ["authorization", `bEARER   ${value}`]]) {
      expect(shown(raw).bearer).toBe(value)
      expect(withoutCredentials([...raw, "X-Mine", "1"])).toEqual(["X-Mine", "1"])
    }
  })

  test.each([...theirs, ""])("as a bearer, the program's own is the program's: %s", (value) => {
    const raw = bearer(value)
    expect(shown(raw).bearer).toBeUndefined()
    expect(withoutCredentials(raw)).toEqual(raw)
  })

  test("of other kinds of authorization there is none that is ours", () => {
    for (const raw of [["Authorization", "Basic YTpi"], ["Authorization", `Basic ${token}`], ["X-Token", token], []]) {
      expect(shown(raw).bearer).toBeUndefined()
      expect(withoutCredentials(raw)).toEqual(raw)
    }
  })

  test("one of ours among several is refused wherever it stands: nobody else is to see it", () => {
    for (const raw of [
      [...bearer(token), ...bearer("of-the-app")],
      [...bearer("of-the-app"), ...bearer(token)],
      ["Authorization", "Basic YTpi", ...bearer(token)],
      [...bearer(token), ...bearer(token)],
    ]) {
      expect(() => shown(raw)).toThrow("more than one Authorization")
      expect(() => withoutCredentials(raw)).toThrow("more than one Authorization")
    }
    const app = [...bearer("one"), ...bearer("two")]
    expect([shown(app).bearer, withoutCredentials(app)]).toEqual([undefined, app])
  })

  test.each(ours)("in a URL, ours is taken out of it: %s", (value) => {
    expect(shown([], `?token=${value}`)).toMatchObject({ inUrl: value, query: "" })
    expect(shown([], `?a=1&token=${value}&b=%26`)).toMatchObject({ inUrl: value, query: "?a=1&b=%26" })
    expect(shown([], `?token=of-the-app&token=${value}`)).toMatchObject({ inUrl: value, query: "?token=of-the-app" })
  })

  test.each([
    "",
    "?",
    "?a=1",
    "?token=",
    ...theirs.map((one) => `?token=${one}`),
    `?xtoken=${token}`,
    `?a=${token}`,
    `?other=${token}`,
  ])("in a URL, the program's own stays: %s", (query) =>
    expect(shown([], query)).toMatchObject({ inUrl: undefined, query }),
  )

  test("in a URL there is at most one", () => {
    expect(() => shown([], `?token=${token}&token=lnk_x`)).toThrow("more than one token")
  })

  test("our cookies are for us, and the others for the program, in one line", () => {
    const raw = ["Cookie", "a=1; gateway_session=x.y=z ;; b=2", "X-Mine", "1", "cookie", "Gateway_Session=v"]
    expect(shown(raw).cookies).toEqual(["x.y=z", "v"])
    expect(withoutCredentials(raw)).toEqual(["X-Mine", "1", "Cookie", "a=1; b=2"])
    expect(withoutCredentials(["Cookie", "gateway_session=x"])).toEqual([])
    expect([shown(["Set-Cookie", "gateway_session=x"]).cookies, shown([]).cookies]).toEqual([[], []])
  })

  test("a name that looks like our cookie's to a browser is not the program's either, and opens nothing", () => {
    for (const name of ["__Host-gateway_session", "__secure-gateway_session"]) {
      expect(withoutCredentials(["Cookie", `${name}=x; a=1`])).toEqual(["Cookie", "a=1"])
      expect(shown(["Cookie", `${name}=x`]).cookies).toEqual([])
    }
    expect([" Gateway_Session ", "gateway_session2", "x-gateway_session"].map(isOurCookieName)).toEqual([
      ...[true, false, false],
    ])
  })

  test("whatever is sent, nothing that opens the gateway goes inside", () => {
    const value = fc.oneof(fc.constantFrom(...ours, ...theirs), fc.string())
    const header = fc.oneof(
      value.map((one) => bearer(one)),
      value.map((one) => ["Cookie", `a=1; gateway_session=${one}`]),
      fc.tuple(fc.string(), value).map(([name, one]) => [`X-${name}`, one]),
    )
    fc.assert(
      fc.property(fc.array(header, { maxLength: 4 }), (headers) => {
        let inside: string[] = []
        try {
          inside = withoutCredentials(headers.flat())
        } catch {
          return
        }
        const opening = inside.flatMap((name, at) =>
          /^(?:authorization|cookie)$/i.test(name) && at % 2 === 0 ? [inside[at + 1] ?? ""] : [],
        )
        for (const one of opening) expect(/^Bearer (?:tkt_|lnk_)|gateway_session=/.test(one)).toBe(false)
        for (const one of opening) expect(one).not.toBe(`Bearer ${token}`)
      }),
    )
  })
})
