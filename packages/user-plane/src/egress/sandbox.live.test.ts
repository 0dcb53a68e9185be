import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { createServer, type IncomingHttpHeaders, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { exec, type ExecResult } from "@warren/drivers/init/exec.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { specOf } from "@warren/drivers/spec-of.ts"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { brokerEnvironment } from "../broker/broker-environment.ts"
import { Broker } from "../broker/broker.ts"
import { leaseMigrations, Leases } from "../broker/leases.ts"
import { proxyEnvironment } from "./proxy-environment.ts"
import { EgressProxy } from "./proxy.ts"

const never = new AbortController().signal
const dist = resolve(import.meta.dirname, "../../../../dist")
const realKey = `sk-real-${"k3y".repeat(12)}`

/** A sandbox whose only way out is its proxy, with a broker behind it, and two servers on the host's loopback. */
describe("a sandbox and its way out", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "we-")))
  const seen: IncomingHttpHeaders[] = []
  const servers: Server[] = []
  let driver: Driver
  let proxy: EgressProxy
  let leases: Leases
  let database: Database
  let broker: Broker
  let sandbox: Sandbox
  let environment: Record<string, string>
  let other = ""

  async function serve(answer: string): Promise<string> {
    const server = createServer((request, response) => {
      seen.push(request.headers)
      response.end(answer)
    })
    servers.push(server)
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const run = (command: string, env = environment): Promise<ExecResult> =>
    exec(sandbox, { argv: ["sh", "-c", command], env, timeoutMs: 30_000 })

  beforeAll(async () => {
    const llm = await serve('{"content":"hello from the model"}')
    const site = await serve("a page")
    other = await serve("a secret page of the host")
    database = new Database(join(root, "leases.db"), { migrations: leaseMigrations })
    leases = new Leases(database, systemClock)
    broker = new Broker({
      leases,
      keys: () => Promise.resolve({ value: realKey }),
      upstreams: { anthropic: `http://${llm}` },
      log: silentLog,
      clock: systemClock,
    })
    const folder = join(root, "egress")
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    proxy = await EgressProxy.listen({
      path: join(folder, "proxy.sock"),
      socketMode: 0o666,
      policy: { mode: "list", allow: [`site.example:${site.split(":")[1]}`], allowPrivate: [site] },
      resolve: () => Promise.resolve(["127.0.0.1"]),
      local: broker.handler("ses-1"),
    })
    const lease = leases.grant({ session: "ses-1", scope: "llm:anthropic", destination: llm, ttlMs: 600_000 })
    environment = {
      ...proxyEnvironment(),
      ...brokerEnvironment([lease]),
      SITE: `http://site.example:${site.split(":")[1]}`,
    }
    const programs = { init: join(dist, "warren-init"), launch: join(dist, "warren-launch") }
    driver = await openOciDriver({ root, programs, log: silentLog })
    const spec = specOf(await hostImage(join(root, "host-image")), { network: { mode: "proxy", folder } })
    await driver.create(spec, never)
    sandbox = await driver.start(spec.id, never)
  })

  afterAll(async () => {
    await driver.destroy(sandbox.id)
    await driver[Symbol.asyncDispose]()
    await proxy[Symbol.asyncDispose]()
    broker[Symbol.dispose]()
    database.close()
    for (const server of servers) server.close()
    rmSync(root, { recursive: true, force: true })
  })

  test("reaches what is allowed, and nothing else", async () => {
    expect((await run("curl -sS $SITE/")).stdout.toString()).toBe("a page")
    const refused = await run(
      `curl -sS -m 5 -o /dev/null -w '%{http_code}' http://${other}/; curl -sS -m 5 http://not.listed/`,
    )
    expect(refused.stdout.toString()).not.toContain("secret page")
    // Without the proxy there is no way at all: not to the host's loopback, not to anywhere.
    const direct = await run(
      `curl -sS -m 5 --noproxy '*' http://${other}/; curl -sS -m 5 --noproxy '*' http://93.184.216.34/`,
      {},
    )
    expect(direct.stdout.toString()).toBe("")
    expect(JSON.stringify(proxy.denials.list())).toContain("not.listed")
  })

  test("uses a key it never sees", async () => {
    const asked = await run('curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"')
    expect(asked.stdout.toString()).toContain("hello from the model")
    expect(seen.at(-1)?.["x-api-key"]).toBe(realKey)
    // Everything a program inside can read, as itself and as root: environment, arguments, memory maps' files, every file there is.
    const dump =
      "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; grep -rsa 'sk-rea[l]-' /workspace /home /tmp /etc /run /var /root /dev/shm 2>/dev/null"
    for (const user of ["user", "root"]) {
      const found = await exec(sandbox, { argv: ["sh", "-c", dump], env: environment, user })
      expect(found.stdout.toString()).toContain("lease_")
      expect(found.stdout.toString()).not.toContain("sk-real-")
    }
    // Nor is it in what the host keeps of the sandbox.
    for (const file of readdirSync(root, { recursive: true, withFileTypes: true })) {
      const path = join(file.parentPath, file.name)
      if (file.isFile() && !path.includes("volume.btrfs")) expect(readFileSync(path).includes("sk-real-")).toBe(false)
    }
  })

  test("is refused once its lease is revoked", async () => {
    leases.revokeSession("ses-1")
    const before = seen.length
    const asked = await run(
      'curl -sS -o /dev/null -w "%{http_code}" "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"',
    )
    expect(asked.stdout.toString()).toMatch(/^4\d\d$/)
    expect(seen.length).toBe(before)
  })
})
