import { publicCalls } from "@warren/protocol/control-plane.ts"
import { isStream } from "@warren/protocol/contract.ts"
import { httpOf } from "@warren/protocol/http/path.ts"
import { TokenScope } from "@warren/protocol/token-scope.ts"
import { expect, test } from "vitest"
import { TestControl } from "./testing/test-control.ts"

/** Every route there is, from the contract: one that is added is in the matrix by itself. */
const all = Object.entries(publicCalls).flatMap(([name, entry]) => {
  if (!("http" in entry) || isStream(entry)) return []
  const { method, path } = httpOf(entry.http)
  return [{ name, method, path: path.replaceAll(/\{\w+\}/g, "x"), scope: entry.scope }]
})

test("every route × everybody who should not: nobody, revoked, expired, disabled, every other scope, and no admin", async () => {
  await using system = await TestControl.open()
  const owner = await system.ownerToken()
  const bob = await system.person("bob")
  const make = async (cookie: string, body: object) => (await system.ask("/v1/tokens", { cookie, body })).body
  const carol = await system.person("carol")
  const [revoked, expired] = [await make(bob.cookie, {}), await make(bob.cookie, { lifeMs: 60_000 })]
  const disabled = await make(carol.cookie, {})
  await system.ask(`/v1/tokens/${revoked.about.id}`, { method: "DELETE", cookie: bob.cookie })
  await system.ask("/v1/users/carol", { method: "PATCH", token: owner, body: { isDisabled: true } })
  await system.clock.advance(60_000)
  const strangers = [undefined, "", revoked.token, expired.token, disabled.token, "wrn_guess"]
  let checked = 0
  for (const { name, method, path, scope } of all) {
    if (scope === "open") continue
    const others = TokenScope.options.filter((other) => other !== scope)
    const wrong = await system.token(others)
    const ask = (token: string | undefined) => system.ask(path, { method, token, from: `${checked}` })
    for (const token of strangers) {
      expect([name, (await ask(token)).status]).toEqual([name, 401])
      checked++
    }
    const status = (await ask(wrong)).status
    // Input is looked at before scopes, so nonsense may be called nonsense; it is never let through.
    expect([name, status === 400 ? 403 : status]).toEqual([name, 403])
    if (scope === "admin") {
      const member = (await system.ask(path, { method, cookie: bob.cookie })).status
      expect([name, member === 400 ? 403 : member]).toEqual([name, 403])
    }
    const [about] = (await system.ask("/v1/tokens", { token: owner })).body.items
    await system.ask(`/v1/tokens/${about.id}`, { method: "DELETE", token: owner })
  }
  expect(checked).toBeGreaterThan(400)
})

test("what is open is only what one needs to get in", () => {
  expect(all.filter(({ scope }) => scope === "open").map(({ name }) => name)).toEqual([
    "login.methods",
    "login.password",
    "invite.redeem",
  ])
})

test("plain pages need their scope, too", async () => {
  await using system = await TestControl.open()
  const bob = await system.person("bob")
  for (const path of ["/metrics", "/v1/audit/export"]) {
    expect((await system.ask(path)).status).toBe(401)
    expect((await system.ask(path, { cookie: bob.cookie })).status).toBe(403)
    expect((await system.ask(path, { token: await system.ownerToken() })).status).toBe(200)
  }
})

test.each([["evil.example"], ["localhost:1"], ["localhost:7777.evil.example"], ["127.0.0.1"], [""]])(
  "a host that is not ours is not served: %s",
  async (host) => {
    await using system = await TestControl.open()
    expect((await system.ask("/health", { headers: { host } })).status).toBe(403)
  },
)
