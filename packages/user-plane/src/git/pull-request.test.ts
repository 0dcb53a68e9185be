import { execFile } from "node:child_process"
import { mkdir } from "node:fs/promises"
import { promisify } from "node:util"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { expect, test } from "vitest"
import { Forge } from "./forge.ts"
import { requestPull, type Wish } from "./pull-request.ts"
import { Repository } from "./repository.ts"
import { ForgeServer } from "./testing/forge-server.ts"
import { HostWorkbench } from "./testing/host-workbench.ts"

const run = promisify(execFile)
const key = "ghp_real-key-do-not-leak"
const wish: Wish = { title: "Fix it", body: "Because.", isDraft: false }
const lent = [{ scope: "git:write", destination: "github.com/acme/widgets" }] as const

/** A repository whose remote is called github.com and lies beside it, and a forge. */
async function system(scope: Scope) {
  const folder = scope.use(await TempFolder.make())
  const server = scope.use(await ForgeServer.start("acme/widgets", key))
  await mkdir(folder.at("work"))
  const bench = new HostWorkbench(folder.path)
  bench.env = {
    ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: `url.file://${folder.at("remote.git")}.insteadOf` },
    GIT_CONFIG_VALUE_0: "https://github.com/acme/widgets.git",
  }
  const env = { PATH: process.env["PATH"], HOME: folder.path, ...bench.env }
  const who = ["-c", "user.name=a", "-c", "user.email=a@b"]
  const git = (...args: string[]) => run("git", ["-C", folder.at("work"), ...who, ...args], { env })
  await git("init", "-q", "--bare", "-b", "main", folder.at("remote.git"))
  await git("init", "-q", "-b", "main")
  await git("remote", "add", "origin", "https://github.com/acme/widgets.git")
  await git("commit", "-q", "--allow-empty", "-m", "first")
  await git("push", "-q", "origin", "main")
  await git("remote", "set-head", "origin", "--auto")
  const lines: string[] = []
  const log = createLog((line) => void lines.push(line))
  const forge = new Forge({ bases: { "github.com": server.url }, keys: () => Promise.resolve({ value: key }), log })
  const repository = new Repository(bench, folder.at("work"))
  const ask = (more: Partial<Wish> = {}, keys: Parameters<typeof requestPull>[2] = lent) =>
    requestPull(repository, { ...wish, ...more }, keys, forge, new AbortController().signal)
  return { folder, server, git, ask, lines }
}

test("a branch is pushed and asked to be merged; asked again, it is the same one", async () => {
  await using scope = new Scope()
  const { server, git, ask, lines } = await system(scope)
  await git("checkout", "-q", "-b", "fix")
  await git("commit", "-q", "--allow-empty", "-m", "second")
  const made = await ask({ isDraft: true })
  expect(made).toEqual({
    ...{ url: "https://github.com/acme/widgets/pull/1", number: 1, isNew: true, head: "fix", base: "main" },
  })
  expect(server.pulls).toEqual([{ number: 1, head: "fix", base: "main", title: "Fix it", draft: true }])
  expect((await git("ls-remote", "origin", "refs/heads/fix")).stdout).not.toBe("")
  expect(await ask()).toMatchObject({ number: 1, isNew: false })
  expect(lines.join("")).not.toContain(key)
})

test("what cannot be is said before anything is pushed", async () => {
  await using scope = new Scope()
  const { git, ask, server } = await system(scope)
  await expect(ask()).rejects.toMatchObject({ code: "conflict", message: "main cannot be merged into itself" })
  await git("checkout", "-q", "-b", "fix")
  await expect(ask({}, [])).rejects.toMatchObject({ code: "forbidden", hint: expect.stringContaining("git:write") })
  await expect(ask({}, [{ scope: "git:read", destination: "github.com" }])).rejects.toMatchObject({ code: "forbidden" })
  await expect(ask({}, [{ scope: "git:write", destination: "github.com/acme/other" }])).rejects.toMatchObject({
    code: "forbidden",
  })
  expect((await git("ls-remote", "origin", "refs/heads/fix")).stdout).toBe("")
  expect(server.asked).toEqual([])
  await git("checkout", "-q", "--detach")
  await expect(ask()).rejects.toMatchObject({ code: "conflict" })
})

test("what a forge says instead is told, without the key", async () => {
  await using scope = new Scope()
  const { git, ask, server } = await system(scope)
  await git("checkout", "-q", "-b", "fix")
  const cases = [
    [401, JSON.stringify({ message: `no ${key}` }), "forbidden"],
    [404, "{}", "not_found"],
    [422, JSON.stringify({ message: "No commits between main and fix" }), "conflict"],
    [500, "<html>", "unavailable"],
    [201, "[]", "unavailable"],
  ] as const
  for (const [status, body, code] of cases) {
    server.answer = { status, body }
    const failure: unknown = await ask().catch((thrown: unknown) => thrown)
    expect(failure).toMatchObject({ code })
    expect(String(failure)).not.toContain(key)
  }
})
