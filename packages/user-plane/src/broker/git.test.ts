import { execFile } from "node:child_process"
import { mkdir, readFile } from "node:fs/promises"
import { promisify } from "node:util"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { describe, expect, test } from "vitest"
import { brokerEnvironment } from "./broker-environment.ts"
import type { LeaseScope } from "./lease.ts"
import { BrokerSystem, realKey } from "./testing/broker-system.ts"
import { gitServer } from "./testing/git-server.ts"

const run = promisify(execFile)
const hour = 3_600_000

describe("git through the broker", () => {
  test("clone and push work by the real URL, with a lease for what it is good for; no file holds a token", async () => {
    await using folder = await TempFolder.make()
    await mkdir(folder.at("served", "acme"), { recursive: true })
    await mkdir(folder.at("home"))
    const plain = { PATH: process.env["PATH"], HOME: folder.at("home"), GIT_CONFIG_NOSYSTEM: "1" }
    const git = (environment: Record<string, string>, ...args: string[]) =>
      run("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.version=2", ...args], {
        cwd: folder.path,
        env: { ...plain, ...environment },
      })
    const bare = folder.at("served", "acme", "widgets.git")
    await git({}, "init", "-q", "--bare", "-b", "main", bare)
    await git({}, "-C", bare, "config", "http.receivepack", "true")
    const seen: string[] = []
    await using server = await gitServer(folder.at("served"), realKey, seen)
    await using system = await BrokerSystem.start({
      upstreams: { git: { "github.com": `http://127.0.0.1:${server.port}` } },
    })
    const port = await system.sandbox("ses_one")
    const environment = (scope: LeaseScope, destination: string): Record<string, string> =>
      brokerEnvironment([system.leases.grant({ session: "ses_one", scope, destination, ttlMs: hour })], port)
    const writer = environment("git:write", "github.com/acme/widgets")
    const reader = environment("git:read", "github.com")

    await git(writer, "clone", "-q", "https://github.com/acme/widgets.git", "work")
    await git({}, "-C", "work", "commit", "-q", "--allow-empty", "-m", "first")
    await git(writer, "-C", "work", "push", "-q", "origin", "HEAD:main")
    await git(reader, "clone", "-q", "git@github.com:acme/widgets", "again")
    expect((await git({}, "-C", "again", "log", "--format=%s")).stdout).toBe("first\n")
    await git({}, "-C", "again", "commit", "-q", "--allow-empty", "-m", "second")
    await expect(git(reader, "-C", "again", "push", "-q", "origin", "HEAD:main")).rejects.toThrow(/403/)
    await expect(git(writer, "clone", "-q", "https://github.com/acme/gadgets.git", "no")).rejects.toThrow()
    const foreign = environment("git:write", "gitlab.com")
    await expect(
      git(
        { ...foreign, GIT_TERMINAL_PROMPT: "0" },
        "ls-remote",
        `http://127.0.0.1:${port}/git/github.com/acme/widgets`,
      ),
    ).rejects.toThrow()

    expect(seen.length).toBeGreaterThan(4)
    expect(seen.join("")).toContain(Buffer.from(`x-access-token:${realKey}`).toString("base64"))
    const { stdout } = await run("grep", [
      "-rlaE",
      `lease_|${realKey}|127.0.0.1`,
      folder.path,
      "--exclude-dir=served",
    ]).catch((error: unknown) => error as { stdout: string })
    expect(stdout).toBe("")
    expect(await readFile(folder.at("work", ".git", "config"), "utf8")).toContain("https://github.com/acme/widgets.git")
    await eventually(() => system.lines.length >= 8)
    const refusals = system.lines
      .map((line) => JSON.parse(line) as { refusal?: string; destination?: string })
      .filter(({ refusal }) => refusal)
    expect(refusals).toMatchObject([
      { refusal: "other-scope", destination: "github.com/acme/widgets" },
      ...refusals.slice(1),
    ])
    expect(system.lines.join("")).not.toMatch(/lease_|sk-real/)
  })
})
