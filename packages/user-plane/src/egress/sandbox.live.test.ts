import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { newId } from "@warren/base/id.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { canSnapshot, type Driver, type Sandbox, type Snapshotting } from "@warren/drivers/driver.ts"
import { exec, Execution, type ExecResult } from "@warren/drivers/init/exec.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Broker } from "../broker/broker.ts"
import { leaseMigrations, Leases } from "../broker/leases.ts"
import { gitServer } from "../broker/testing/git-server.ts"
import { openEgress, type SessionEgress } from "./session-egress.ts"
import { Loopback } from "./testing/egress-system.ts"

const never = new AbortController().signal
const dist = resolve(import.meta.dirname, "../../../../dist")
const realKey = `sk-real-${"k3y".repeat(12)}`

/** A sandbox whose only way out is its proxy, with a broker behind it, and servers on the host's loopback. */
describe("a sandbox and its way out", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "we-")))
  const scope = new Scope()
  const seen: IncomingHttpHeaders[] = []
  const lines: string[] = []
  const streams: ServerResponse[] = []
  const log = createLog((line) => void lines.push(line))
  let [llm, site, other, git]: Loopback[] = []
  let driver: Driver
  let sandbox: Sandbox
  let runner: Scope
  let egress: SessionEgress

  const serve = async (answer: string): Promise<Loopback> =>
    scope.use(
      await Loopback.http((request, response) => {
        seen.push(request.headers)
        if (request.url?.endsWith("/stream") !== true) return void response.end(answer)
        streams.push(response)
        return void response.writeHead(200).write("begun\n")
      }),
    )
  const run = (command: string, user = "user"): Promise<ExecResult> =>
    exec(sandbox, { argv: ["bash", "-c", command], env: egress.environment(), user, timeoutMs: 30_000 })
  const text = async (command: string): Promise<string> => (await run(`(${command}) 2>&1`)).stdout.toString()
  const siteUrl = (): string => `http://site.example:${site?.port}`

  /** What a runner has for the session: closed and opened again, it is the next runner's. */
  async function startRunner(): Promise<void> {
    runner = new Scope()
    const database = runner.use(new Database(join(root, "runner.db"), { migrations: leaseMigrations }))
    const leases = new Leases(database, systemClock)
    const broker = runner.use(
      new Broker({
        leases,
        keys: () => Promise.resolve({ value: realKey }),
        upstreams: {
          anthropic: `http://127.0.0.1:${llm?.port}`,
          git: { "github.com": `http://127.0.0.1:${git?.port}` },
        },
        log,
        clock: systemClock,
      }),
    )
    egress = runner.use(
      await openEgress({
        session: "ses-1",
        folder: join(root, "egress"),
        policy: { mode: "list", allow: [`site.example:${site?.port}`], allowPrivate: [`127.0.0.1:${site?.port}`] },
        credentials: [
          { scope: "llm:anthropic", destination: `127.0.0.1:${llm?.port}` },
          { scope: "git:write", destination: "github.com/acme/widgets" },
        ],
        keepPolicy: () => undefined,
        resolve: () => Promise.resolve(["127.0.0.1"]),
        ...{ broker, leases, log, clock: systemClock },
      }),
    )
  }

  async function freeze(snapshotting: Driver & Snapshotting): Promise<void> {
    const id = newId("snp")
    await snapshotting.snapshot(sandbox.id, id)
    scope.defer(() => snapshotting.removeSnapshot(id))
  }

  beforeAll(async () => {
    llm = await serve('{"content":"hello from the model"}')
    site = await serve("a page")
    other = await serve("a secret page of the host")
    const served = join(root, "served")
    mkdirSync(join(served, "acme"), { recursive: true })
    execFileSync("git", ["init", "-q", "--bare", "-b", "main", join(served, "acme/widgets.git")])
    execFileSync("git", ["-C", join(served, "acme/widgets.git"), "config", "http.receivepack", "true"])
    git = scope.use(await gitServer(served, realKey, []))
    await startRunner()
    const programs = { init: join(dist, "warren-init"), launch: join(dist, "warren-launch") }
    driver = scope.use(await openOciDriver({ root: join(root, "oci"), programs, log }))
    const limits = {
      ...defaultLimits,
      mayBeUnlimited: true,
      ...(driver.abilities.diskLimit ? {} : { diskBytes: 0 }),
    } as const
    const spec = specOf(await hostImage(join(root, "host-image")), {
      limits,
      network: { mode: "proxy", folder: egress.folder },
    })
    await driver.create(spec, never)
    scope.defer(() => driver.destroy(spec.id))
    sandbox = await driver.start(spec.id, never)
  })

  afterAll(async () => {
    await scope.close()
    await runner.close()
    rmSync(root, { recursive: true, force: true })
  })

  test("reaches what is allowed, and nothing else", async () => {
    expect(await text(`curl -sS ${siteUrl()}/`)).toBe("a page")
    expect(await text(`curl -sS -m 5 http://127.0.0.1:${other?.port}/`)).not.toContain("secret page")
    expect(await text("curl -sS -m 5 http://not.listed/")).toMatch(/not\.listed is not allowed/)
    // Without the proxy there is no way at all: not to the host's loopback, not to anywhere.
    const direct = await exec(sandbox, {
      argv: ["sh", "-c", `curl -sS -m 5 http://127.0.0.1:${other?.port}/; curl -sS -m 5 http://93.184.216.34/`],
    })
    expect(direct.stdout.toString()).toBe("")
    expect(egress.denials.since(0).map(({ item }) => item.host)).toContain("not.listed")
  })

  test("uses a key it never sees", async () => {
    const asked = await text('curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"')
    expect(asked).toContain("hello from the model")
    expect(seen.at(-1)?.["x-api-key"]).toBe(realKey)
  })

  test("clones and pushes by the real URL, with a token that is in no file, environment or argument", async () => {
    const identity = "git -c user.name=a -c user.email=a@b"
    const said = await text(`cd /workspace && git clone -q https://github.com/acme/widgets.git work && cd work &&
      ${identity} commit -q --allow-empty -m "from inside" && git push -q origin HEAD:main && cat .git/config`)
    expect(said).toContain("url = https://github.com/acme/widgets.git")
    expect(said).not.toMatch(/lease_|127\.0\.0\.1|sk-real/)
    const bare = join(root, "served/acme/widgets.git")
    expect(execFileSync("git", ["-C", bare, "log", "--format=%s", "main"]).toString()).toBe("from inside\n")
    expect(await text("git clone -q https://github.com/acme/gadgets.git /workspace/no")).toMatch(/fatal/)
  })

  test("holds no key anywhere: inside, in what is frozen of it, in the runner's files and logs", async () => {
    // Everything a program inside can read, as itself and as root: environment, arguments, files.
    const dump =
      "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; grep -rsa 'sk-rea[l]-' /workspace /home /tmp /etc /run /var /root /dev/shm 2>/dev/null"
    for (const user of ["user", "root"]) {
      const found = await run(dump, user)
      expect(found.stdout.toString()).toContain("lease_")
      expect(found.stdout.toString()).not.toContain("sk-real-")
    }
    await text("echo a-note-to-find > /workspace/note; sync")
    // Where nothing can be paused, nothing can be frozen while it runs.
    const isFrozen = canSnapshot(driver) && driver.abilities.pause
    if (canSnapshot(driver) && isFrozen) await freeze(driver)
    const holding = (words: string): string[] =>
      spawnSync("grep", ["-rlsaF", "--exclude=*.btrfs", "--exclude-dir=served", words, root])
        .stdout.toString()
        .trim()
        .split("\n")
        .filter((path) => path !== "")
    // Found wherever it is: the sandbox's own, and the frozen one.
    if (process.getuid?.() === 0) expect(holding("a-note-to-find")).toHaveLength(isFrozen ? 2 : 1)
    expect(holding(realKey)).toEqual([])
    expect(holding(Buffer.from(`x-access-token:${realKey}`).toString("base64"))).toEqual([])
    expect(lines.join("")).toContain("broker.use")
    expect(lines.join("")).not.toMatch(/sk-real|lease_/)
  })

  test("has its way out again when the next runner opens it, and old keys go on", async () => {
    const before = egress.environment()
    await runner.close()
    const meanwhile = await exec(sandbox, { argv: ["curl", "-sS", "-m", "5", siteUrl()], env: before })
    expect([meanwhile.code === 0, meanwhile.stdout.toString()]).toEqual([false, ""])
    await startRunner()
    expect(await text(`curl -sS ${siteUrl()}/`)).toBe("a page")
    const ask = 'curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"'
    const old = await exec(sandbox, { argv: ["sh", "-c", ask], env: before })
    expect(old.stdout.toString()).toContain("hello from the model")
    expect(egress.environment()["ANTHROPIC_API_KEY"]).not.toBe(before["ANTHROPIC_API_KEY"])
  })

  test("is cut off from a host that is no longer allowed, and from a key that is revoked, in the middle", async () => {
    const commands = [
      `curl -sS -N ${siteUrl()}/stream`,
      'curl -sS -N "$ANTHROPIC_BASE_URL/v1/stream" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"',
    ]
    for (const command of commands) {
      await using stream = await Execution.start(sandbox, { argv: ["sh", "-c", command], env: egress.environment() })
      expect((await stream.output().next()).value?.bytes.toString()).toBe("begun\n")
      if (command.includes("site.example")) expect(await egress.setPolicy({ mode: "none" })).toBe(1)
      else for (const { id } of egress.leases()) egress.revoke(id)
      expect((await stream.ended()).code).not.toBe(0)
    }
    expect(streams).toHaveLength(2)
    expect(egress.denials.list()[0]).toMatchObject({ reason: "policy-changed", host: "site.example" })
  })

  test("is refused everything when the session is over", async () => {
    const env = egress.environment()
    await egress.end()
    await startRunner()
    const before = seen.length
    const ask =
      'curl -sS -o /dev/null -w "%{http_code}" "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"'
    const asked = await exec(sandbox, { argv: ["sh", "-c", ask], env })
    expect(asked.stdout.toString()).toBe("401")
    expect(seen.length).toBe(before)
  })
})
