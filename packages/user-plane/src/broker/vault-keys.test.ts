import { ManualClock } from "@warren/base/clock.ts"
import { Scope } from "@warren/base/scope.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Vault, vaultMigrations } from "../vault/vault.ts"
import type { LeaseScope } from "./lease.ts"
import { vaultKeys } from "./vault-keys.ts"

const scope = new Scope()
let database: Database
let vault: Vault

beforeAll(async () => {
  const folder = scope.use(await TempFolder.make())
  database = scope.use(new Database(folder.at("warren.db"), { migrations: vaultMigrations }))
  vault = await Vault.open({ database, clock: new ManualClock(), log: silentLog, keyFile: folder.at("vault", "key") })
})
afterAll(() => scope.close())

const keyFor = (about: LeaseScope, destination: string) => vaultKeys(vault)(about, destination)

describe("the key that is lent", () => {
  test("is the one whose name says what it is for, and never another", async () => {
    await expect(keyFor("llm:openai", "api.openai.com")).rejects.toMatchObject({
      ...{ code: "not_found", hint: "set the secret OPENAI_API_KEY" },
    })
    for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GIT_TOKEN_GITHUB_COM", "GIT_TOKEN"])
      vault.set(name, `value of ${name}`)
    expect(await keyFor("llm:anthropic", "api.anthropic.com")).toEqual({ value: "value of ANTHROPIC_API_KEY" })
    expect(await keyFor("llm:openai", "api.openai.com")).toEqual({ value: "value of OPENAI_API_KEY" })
    expect(await keyFor("git:read", "github.com/acme/widgets")).toEqual({ value: "value of GIT_TOKEN_GITHUB_COM" })
    expect(await keyFor("git:read", "git.example")).toEqual({ value: "value of GIT_TOKEN" })
  })

  test("is not another one because a vault cannot be read", async () => {
    vault.set("GIT_TOKEN_BROKEN_EXAMPLE", "never")
    database.run("UPDATE secrets SET sealed = x'00' WHERE name = 'GIT_TOKEN_BROKEN_EXAMPLE'")
    await expect(keyFor("git:read", "broken.example")).rejects.not.toMatchObject({ code: "not_found" })
  })
})
