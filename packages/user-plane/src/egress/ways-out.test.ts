import { existsSync } from "node:fs"
import { ManualClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Broker } from "../broker/broker.ts"
import { leaseMigrations, Leases } from "../broker/leases.ts"
import type { WayOut, WaysOut } from "../sessions/way-out.ts"
import { waysOut } from "./ways-out.ts"

const sandbox = "sbx_one" as SandboxId
const llms = { "llm:anthropic": "api.anthropic.com", "llm:openai": "api.openai.com" } as const
const scope = new Scope()
let leases: Leases
let ways: WaysOut
let way: WayOut

beforeAll(async () => {
  const folder = scope.use(await TempFolder.make())
  const database = scope.use(new Database(folder.at("warren.db"), { migrations: leaseMigrations }))
  const clock = new ManualClock()
  leases = new Leases(database, clock)
  const parts = { leases, log: silentLog, clock }
  const keys = async () => ({ value: "sk-real" })
  const broker = scope.use(new Broker({ ...parts, keys, upstreams: {} }))
  ways = waysOut({ ...parts, root: folder.at("egress"), broker, llms })
  way = scope.use(await ways.open(sandbox))
})
afterAll(() => scope.close())

/** What a program that is started now may use. */
function lent(): [string, string][] {
  way.environment()
  return inForce()
}
const inForce = (): [string, string][] => leases.list(sandbox).map((lease) => [lease.scope, lease.destination])

describe("the way out of a sandbox", () => {
  test("lends keys for what they are for: an LLM's host is known, a forge has to be said", () => {
    way.lend([{ scope: "llm:anthropic" }, { scope: "llm:openai" }, { scope: "git:read", destination: "git.example" }])
    expect(new Map(lent())).toEqual(
      new Map([
        ["git:read", "git.example"],
        ["llm:anthropic", "api.anthropic.com"],
        ["llm:openai", "api.openai.com"],
      ]),
    )
    way.lend([{ scope: "llm:openai", destination: "llm.example" }])
    expect(lent()).toEqual([["llm:openai", "llm.example"]])
    expect(() => way.lend([{ scope: "git:write" }])).toThrow(
      expect.objectContaining({ code: "invalid", message: "git:write needs a destination" }),
    )
  })

  test("goes with its sandbox, and with it what was lent, twice if need be", async () => {
    expect([existsSync(ways.folder(sandbox)), inForce()]).toEqual([true, [["llm:openai", "llm.example"]]])
    await ways.remove(sandbox)
    await ways.remove(sandbox)
    expect([existsSync(ways.folder(sandbox)), inForce()]).toEqual([false, []])
  })
})
