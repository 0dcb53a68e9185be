import { createHash } from "node:crypto"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { describe, expect, test } from "vitest"
import { onceLimits } from "./once.ts"
import { TestControl } from "./testing/test-control.ts"

const key = (name: string): Record<string, string> => ({ "idempotency-key": name })

describe("what makes something at the control plane", () => {
  test("makes it once for each key, and tells the same again", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    const make = (path: string, body: object, name: string) => system.ask(path, { token, body, headers: key(name) })
    for (const [path, body] of [
      ["/v1/tokens", { label: "ci" }],
      ["/v1/users", { name: "alice" }],
      ["/v1/invites", { name: "bob" }],
    ] as const) {
      const first = await make(path, body, `of ${path}`)
      const again = await make(path, body, `of ${path}`)
      expect([first.status, again.status]).toEqual([201, 201])
      expect(again.body).toEqual(first.body)
      expect((await make(path, { ...body, role: "admin", label: "other" }, `of ${path}`)).status).toBe(409)
    }
    expect((await system.ask("/v1/tokens", { token })).body.items).toHaveLength(1)
    expect((await system.ask("/v1/invites", { token })).body.items).toHaveLength(1)
    const { body } = await make("/v1/tokens", { label: "ci" }, "of /v1/tokens")
    expect((await system.ask("/v1/health", { token: body.token })).status).toBe(200)
  })

  test("keys are each user's own, and forgotten after a day", async () => {
    await using system = await TestControl.open()
    const [alice, bob] = [await system.person("alice"), await system.person("bob")]
    const make = (cookie: string) => system.ask("/v1/tokens", { cookie, body: {}, headers: key("same") })
    const [first, other] = [await make(alice.cookie), await make(bob.cookie)]
    expect(first.body.token).not.toBe(other.body.token)
    await system.clock.advance(onceLimits.keptMs + 1)
    expect((await make(alice.cookie)).body.token).not.toBe(first.body.token)
  })

  test("asked at once, one is made; what failed is made by whoever asks next", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    const make = (name: string, of: string) => system.ask("/v1/users", { token, body: { name }, headers: key(of) })
    const tries = await Promise.all(Array.from({ length: 8 }, () => make("carol", "at once")))
    const statuses = new Set(tries.map(({ status }) => status))
    expect(statuses.has(201)).toBe(true)
    expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true)
    expect((await make("carol", "at once")).status).toBe(201)
    expect((await make("carol", "another")).status).toBe(409)
    await system.ask("/v1/users/carol", { method: "DELETE", token })
    expect((await make("carol", "another")).status).toBe(201)
  })

  test("one that died half-way is made again, and what was told once is not lying about", async () => {
    await using system = await TestControl.open()
    const token = await system.ownerToken()
    const make = () => system.ask("/v1/tokens", { token, body: {}, headers: key("died") })
    const { body } = await make()
    const user = (await system.control.store.users.byName("olga"))?.id ?? ""
    const mine = { userId: user, key: hashOf("died") }
    expect((await system.control.store.made.get(mine))?.answer).not.toContain(body.token)
    await system.control.store.made.keep(mine, "")
    expect((await make()).status).toBe(409)
    await system.clock.advance(onceLimits.makingMs + 1)
    expect((await make()).status).toBe(201)
  })

  test("one that died with its control plane is made by the next at once", async () => {
    await using folder = await TempFolder.make()
    const database = folder.at("shared.db")
    const make = async (system: TestControl) =>
      system.ask("/v1/tokens", { token: await system.ownerToken(), body: {}, headers: key("killed") })
    {
      await using system = await TestControl.open({ database })
      expect((await make(system)).status).toBe(201)
      const userId = (await system.control.store.users.byName("olga"))?.id ?? ""
      await system.control.store.made.keep({ userId, key: hashOf("killed") }, "")
      expect((await make(system)).status).toBe(409)
    }
    await using system = await TestControl.open({ database })
    expect((await make(system)).status).toBe(201)
    expect((await make(system)).status).toBe(201)
  })
})

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
