import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { ManyUsers, pidsOf, until } from "./machine.ts"

describe.skipIf(process.getuid?.() !== 0)("making a user, whole or not at all", { timeout: 120_000 }, () => {
  let machine: ManyUsers
  beforeAll(async () => {
    machine = await ManyUsers.open()
  }, 60_000)
  afterAll(() => machine?.[Symbol.asyncDispose](), 60_000)

  async function nothingOf(name: string): Promise<void> {
    for (const file of ["/etc/passwd", "/etc/subuid", "/etc/subgid"])
      expect(readFileSync(file, "utf8")).not.toContain(`${name}:`)
    expect(existsSync(`/home/${name}`)).toBe(false)
    expect(existsSync(machine.at("run", name))).toBe(false)
    expect(existsSync(`/sys/fs/cgroup/memory/warren-${name}`)).toBe(false)
    expect(readdirSync(machine.at("machine", "users"))).toEqual([])
    const { body } = await machine.ask("/v1/users", { token: await machine.rootToken() })
    expect((body["items"] as { name: string }[]).map((one) => one.name)).toEqual(["root"])
  }

  test("a runner that does not start leaves nothing", async () => {
    const name = machine.name("c")
    const program = machine.at("programs", "runner.js")
    renameSync(program, `${program}.away`)
    try {
      const made = await machine.cli.run(["user", "create", name])
      expect(made.code).not.toBe(0)
      expect(made.stderr).toContain("did not start")
    } finally {
      renameSync(`${program}.away`, program)
    }
    await nothingOf(name)
  })

  test("an account that cannot be made leaves nothing, and what was there stays", async () => {
    const name = machine.name("d")
    execFileSync("groupadd", [name])
    try {
      expect((await machine.cli.run(["user", "create", name])).code).not.toBe(0)
      expect(readFileSync("/etc/group", "utf8")).toContain(`${name}:`)
      await nothingOf(name)
    } finally {
      execFileSync("groupdel", [name])
    }
  })

  test.each(["record", "account", "socket"])(
    "killed when there is the %s, the next one makes it whole",
    async (when) => {
      const name = machine.name("e")
      const seen = {
        record: () => existsSync(machine.at("machine", "users", `${name}.json`)),
        account: () => existsSync(`/home/${name}`),
        socket: () => existsSync(machine.at("run", name)),
      }[when]
      const making = machine.cli.start("user", "create", name)
      await until(() => Promise.resolve(seen?.() === true), 1)
      making.child.kill("SIGKILL")
      await making.ended
      const made = await machine.cli.run(["user", "create", name])
      expect(made.stderr).toBe("")
      expect((await machine.cli.run(["user", "list", "--json"])).stdout).toContain('"runner":"running"')
      expect((await machine.cli.run(["user", "delete", name, "--yes"])).code).toBe(0)
      expect(pidsOf(name)).toEqual([])
      await nothingOf(name)
    },
  )
})
