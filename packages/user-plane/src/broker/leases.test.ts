import { ManualClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { leaseMigrations, Leases } from "./leases.ts"

const grant = {
  session: "ses_one",
  scope: "git:read" as const,
  destination: "GitHub.com/Acme/Widgets.git",
  ttlMs: 1_000,
}

test("leases outlive the process, end in time, and are forgotten when told", async () => {
  await using folder = await TempFolder.make()
  const clock = new ManualClock()
  const open = (): Database => new Database(folder.at("runner.db"), { migrations: leaseMigrations })
  let database = open()
  const granted = new Leases(database, clock).grant(grant)
  expect(granted.token).toMatch(/^lease_[\w-]{43}$/)
  expect(granted.destination).toBe("github.com/acme/widgets")
  database.close()
  database = open()
  using _ = database
  const leases = new Leases(database, clock)
  const { token, ...lease } = granted
  expect(leases.find(token)).toEqual(lease)
  expect(leases.list("ses_one")).toEqual([lease])
  await clock.advance(1_000)
  expect(leases.list("ses_one")).toEqual([])
  expect(leases.prune(clock.now())).toBe(0)
  expect(leases.prune(clock.now() + 1)).toBe(1)
  expect(leases.find(token)).toBeUndefined()
  for (const bad of [
    { ttlMs: 0 },
    { ttlMs: Number.NaN },
    { ttlMs: 30 * 24 * 3_600_000 + 1 },
    { destination: "a/../b" },
    { destination: "a/./b" },
    { destination: "https://a" },
    { destination: "" },
  ]) {
    expect(() => leases.grant({ ...grant, ...bad })).toThrow(Fault)
  }
  for (let i = 0; i < 100; i++) leases.grant(grant)
  expect(() => leases.grant(grant)).toThrow(/more than 100/)
  expect(leases.revokeSession("ses_one")).toBe(100)
})

test("a lease that makes no sense in the database gives no right to anything", async () => {
  await using folder = await TempFolder.make()
  using database = new Database(folder.at("runner.db"), { migrations: leaseMigrations })
  const leases = new Leases(database, new ManualClock())
  const { token, id } = leases.grant(grant)
  for (const [spoil, mend] of [
    ["scope = 'git:everything'", "scope = 'git:read'"],
    ["id = 'ses_other'", `id = '${id}'`],
  ]) {
    database.run(`UPDATE leases SET ${spoil}`)
    expect(() => leases.find(token)).toThrow(/cannot be read/)
    expect(() => leases.list("ses_one")).toThrow(/cannot be read/)
    database.run(`UPDATE leases SET ${mend}`)
  }
  expect(leases.find(token)).toMatchObject({ id, scope: "git:read" })
})
