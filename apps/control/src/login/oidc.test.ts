import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { OidcServer } from "../testing/oidc-server.ts"
import { TestControl } from "../testing/test-control.ts"
import { isOwnPlace } from "./oidc.ts"

const redirect = "http://localhost:7777/v1/login/oidc/callback"
let provider: OidcServer
beforeAll(async () => {
  provider = await OidcServer.start(redirect)
})
afterAll(() => provider[Symbol.asyncDispose]())

const open = () =>
  TestControl.open({
    oidc: { issuer: provider.issuer, client: "warren", secret: "a secret", nameClaim: "preferred_username" },
  })

/** What a browser keeps of an answer. */
const kept = (headers: Headers): string =>
  headers
    .getSetCookie()
    .find((one) => one.includes("oidc="))
    ?.split(";")[0] ?? ""

/** Goes there and back. */
async function goThere(system: TestControl, login: string, next = "/page") {
  const begun = await system.ask(`/v1/login/oidc?next=${encodeURIComponent(next)}`)
  expect(begun.status).toBe(302)
  const back = await provider.signIn(begun.headers.get("location") ?? "", login, redirect)
  return { back, cookie: kept(begun.headers) }
}

const create = async (system: TestControl, name: string): Promise<void> => {
  await system.ask("/v1/users", { token: await system.ownerToken(), body: { name } })
}

describe("signing in at an identity provider", () => {
  test("a user an admin has made comes in, and goes where they wanted", async () => {
    await using system = await open()
    await create(system, "alice")
    expect((await system.ask("/v1/login")).body).toEqual({ password: true, oidc: "/v1/login/oidc" })
    const { back, cookie } = await goThere(system, "alice")
    const came = await system.ask(back.pathname + back.search, { headers: { cookie } })
    expect([came.status, came.headers.get("location")]).toEqual([302, "/page"])
    expect((await system.ask("/v1/account", { cookie: came.cookie })).body.user.name).toBe("alice")
    const again = await goThere(system, "alice")
    expect(
      (await system.ask(again.back.pathname + again.back.search, { headers: { cookie: again.cookie } })).status,
    ).toBe(302)
    expect((await system.audit()).filter(({ action }) => action === "login.oidc")).toHaveLength(2)
  })

  test("somebody unknown does not, nor somebody who calls themselves like a user who signs in otherwise", async () => {
    await using system = await open()
    await system.person("bob")
    await create(system, "carol")
    for (const login of ["nobody", "bob"]) {
      const { back, cookie } = await goThere(system, login)
      const came = await system.ask(back.pathname + back.search, { headers: { cookie } })
      expect([login, came.status, came.cookie]).toEqual([login, 401, undefined])
    }
    const first = await goThere(system, "carol")
    expect(
      (await system.ask(first.back.pathname + first.back.search, { headers: { cookie: first.cookie } })).status,
    ).toBe(302)
    // Another account there, of the same name.
    const second = await goThere(system, "carol@evil")
    const refused = await system.ask(second.back.pathname + second.back.search, { headers: { cookie: second.cookie } })
    expect(refused.status).toBe(401)
  })

  test("what comes back has to be what was sent: state, cookie, code, and only once", async () => {
    await using system = await open()
    await create(system, "alice")
    const [one, two] = [await goThere(system, "alice"), await goThere(system, "alice")]
    const come = (back: URL, cookie: string, change: (back: URL) => void = () => undefined) => {
      const url = new URL(back)
      change(url)
      return system.ask(url.pathname + url.search, { headers: { cookie } })
    }
    const statuses = [
      await come(one.back, ""),
      await come(one.back, "warren-oidc=nonsense"),
      await come(one.back, two.cookie),
      await come(one.back, one.cookie, (url) => url.searchParams.set("state", "x")),
      await come(one.back, one.cookie, (url) => url.searchParams.delete("state")),
      await come(one.back, one.cookie, (url) => url.searchParams.set("code", "x")),
      await come(one.back, one.cookie, (url) => url.searchParams.set("iss", "https://evil.example")),
    ].map(({ status }) => status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401, 401])
    expect((await come(two.back, two.cookie)).status).toBe(302)
    expect((await come(two.back, two.cookie)).status).toBe(401)
  })

  test("takes no longer than it may", async () => {
    await using system = await open()
    await create(system, "alice")
    const { back, cookie } = await goThere(system, "alice")
    await system.clock.advance(10 * 60_000)
    expect((await system.ask(back.pathname + back.search, { headers: { cookie } })).status).toBe(401)
  })

  test("a disabled user stays out", async () => {
    await using system = await open()
    await create(system, "alice")
    const token = await system.ownerToken()
    await system.ask("/v1/users/alice", { method: "PATCH", token, body: { isDisabled: true } })
    const { back, cookie } = await goThere(system, "alice")
    expect((await system.ask(back.pathname + back.search, { headers: { cookie } })).status).toBe(401)
  })

  test("a provider that does not answer is said so, and asked again", async () => {
    await using system = await TestControl.open({
      oidc: { issuer: "http://127.0.0.1:1", client: "warren", secret: "", nameClaim: "sub" },
    })
    expect((await system.ask("/v1/login/oidc")).body.error.code).toBe("unavailable")
    expect((await system.ask("/v1/login/oidc")).body.error.code).toBe("unavailable")
  })

  test("without one there is none", async () => {
    await using system = await TestControl.open()
    expect((await system.ask("/v1/login")).body).toEqual({ password: true })
    expect((await system.ask("/v1/login/oidc")).status).toBe(404)
  })
})

test.each([
  ["/", true],
  ["/a/b?c=d&e=%20", true],
  ["//evil.example", false],
  ["/\\evil.example", false],
  ["\\\\evil.example", false],
  ["https://evil.example", false],
  ["javascript:alert(1)", false],
  ["/.//evil.example", false],
  ["/a\r\nset-cookie: x", false],
  ["", false],
  [`/${"a".repeat(600)}`, false],
])("%j is a place of ours: %s", (next, isOurs) => {
  expect(isOwnPlace(next)).toBe(isOurs)
})
