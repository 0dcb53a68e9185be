import { newId } from "@warren/base/id.ts"
import fc from "fast-check"
import { expect, test } from "vitest"
import { askedOf, checkAsked } from "./asked.ts"

const names = { domain: "warren.localhost", hosts: new Set(["localhost:7777", "warren.localhost:7777"]) }
const session = newId("ses")
const host = "localhost:7777"

test.each([
  `/s/${session}/t/3000/`,
  `/s/${session}/t/web`,
  `/s/${session}/vscode/?folder=/x`,
  `/s/${session}/ttyd`,
  `/s/${session}/vnc/websockify?token=x`,
  `//s//${session}//t//3000/`,
  `http://localhost:7777/s/${session}/t/3000/`,
  `/s/${session}/t/3000/../../..`,
])("%s is the gateway's", (url) => {
  expect(askedOf({ url, host }, names)).toEqual({ session })
})

test.each([
  `/s/${session}`,
  `/s/${session}/terminal`,
  `/s/fix-login/files`,
  `/s/${session}/tools`,
  `/s/${session}/vscodex`,
  "/v1/sessions",
  "/",
  "*",
  "",
])("%s is not", (url) => {
  expect(askedOf({ url, host }, names)).toBeUndefined()
})

test("a name below the domain is a preview's, whatever its path; what is no session is nobody's", () => {
  const own = `3000-${session.slice(4)}.warren.localhost:7777`
  for (const url of ["/", "/v1/sessions", "/s/x/terminal"])
    expect(askedOf({ url, host: own }, names)).toEqual({ session })
  expect(askedOf({ url: "/", host: own.toUpperCase() }, names)).toEqual({ session })
  for (const wrong of ["x.warren.localhost", "3000-short.warren.localhost", `.warren.localhost`]) {
    const asked = askedOf({ url: "/", host: wrong }, names)
    expect(() => checkAsked({ url: "/", host: wrong }, asked ?? { session: undefined }, names)).toThrow("nothing")
  }
  expect(askedOf({ url: "/", host: "warren.localhost:7777" }, names)).toBeUndefined()
  expect(askedOf({ url: "/", host: "xwarren.localhost" }, names)).toBeUndefined()
})

test("the API for programs inside is the gateway's, and names no session: that is in its token", () => {
  for (const url of ["/api/tunnels", "/api/tunnels/web", "/api/tunnels?x", "http://localhost:7777/api/tunnels"])
    expect(askedOf({ url, host }, names)).toEqual({ session: undefined })
  for (const url of ["/api/tunnelsx", "/api", "/x/api/tunnels", "//api/tunnels"])
    expect(askedOf({ url, host }, names)).toBeUndefined()
  expect(checkAsked({ url: "/api/tunnels", host }, { session: undefined }, names)).toBeUndefined()
})

test("what can be for nobody is refused before anybody is asked about it", () => {
  const why = (url: string, at: string, about: string | undefined = session): string => {
    try {
      checkAsked({ url, host: at }, { session: about }, names)
      return "passes"
    } catch (refusal) {
      return (refusal as { code: string }).code
    }
  }
  const path = `/s/${session}/t/3000/`
  for (const at of [
    host,
    host.toUpperCase(),
    "warren.localhost:7777",
    `3000-x.warren.localhost:9`,
    "a.warren.localhost",
  ])
    expect([at, why(path, at)]).toEqual([at, "passes"])
  for (const at of [
    "evil.example",
    "localhost",
    "localhost:1",
    "warren.localhost.evil.example",
    "xwarren.localhost",
    "",
  ])
    expect([at, why(path, at)]).toEqual([at, "forbidden"])
  expect([why(`http://localhost:7777${path}`, host), why("*", host)]).toEqual(["invalid", "invalid"])
  for (const about of ["", "ses_", "ses_short", `${session}0`, session.toUpperCase(), "../etc"])
    expect([about, why(path, host, about)]).toEqual([about, "not_found"])
})

test("where previews have no names, no name is a preview's", () => {
  const none = { ...names, domain: "" }
  for (const at of [`3000-${session.slice(4)}.`, `3000-${session.slice(4)}.warren.localhost`, ""])
    expect(askedOf({ url: "/", host: at }, none)).toBeUndefined()
})

test("nothing that is asked for throws where it is only sorted, and what passes the check names one session or none", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.oneof(fc.string(), fc.constant(host), fc.constant(`x-${session.slice(4)}.warren.localhost`)),
      (url, at) => {
        const asked = askedOf({ url, host: at }, names)
        if (!asked) return
        try {
          checkAsked({ url, host: at }, asked, names)
        } catch {
          return
        }
        expect(asked.session === undefined || /^ses_[0-9a-z]{20}$/.test(asked.session)).toBe(true)
      },
    ),
  )
})
