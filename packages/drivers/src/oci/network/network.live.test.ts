import { once } from "node:events"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { createServer as createTcpServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { egressPort } from "../../sandbox-spec.ts"
import { Fixture, text } from "../testing/fixture.ts"
import { pidsIn } from "../testing/invariants.ts"

const never = new AbortController().signal

describe("the network of a sandbox", () => {
  const fixture = new Fixture()
  const folder = mkdtempSync(join(tmpdir(), "wn-"))
  chmodSync(folder, 0o755)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** The smallest proxy: it answers with what it was asked for. */
  async function proxy(says: string): Promise<Server & AsyncDisposable> {
    const path = join(folder, "proxy.sock")
    const server = createServer((request, response) => response.end(`${says} ${request.url}\n`)).listen(path)
    await once(server, "listening")
    chmodSync(path, 0o666)
    const close = async (): Promise<void> => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
    return Object.assign(server, { [Symbol.asyncDispose]: close })
  }
  // Reset so fast that it may look as if it had never been accepted.
  const refused = /reset by peer|Failed to connect/
  const ask = `curl -sS -m 5 -x http://127.0.0.1:${egressPort} http://example.test/x 2>&1`

  it("is nothing but loopback with none", async () => {
    await using sandbox = await fixture.use({ network: { mode: "none" } })
    expect((await sandbox.posture()).network).toEqual({ mode: "none", routes: [] })
    expect(await text(sandbox, ask)).toMatch(refused)
    expect(await text(sandbox, "curl -sS -m 5 http://192.0.2.2/ 2>&1")).toMatch(/Couldn't connect|unreachable/)
  })

  it("reaches the proxy, whichever runner has it, and nothing else, with proxy", async () => {
    await using sandbox = await fixture.use({ network: { mode: "proxy", folder } })
    expect((await sandbox.posture()).network).toEqual({ mode: "proxy", routes: [] })
    expect((await sandbox.posture()).degraded).toEqual([])
    expect(await text(sandbox, ask)).toMatch(refused)
    for (const runner of ["first", "second"]) {
      await using _ = await proxy(runner)
      expect(await text(sandbox, ask)).toBe(`${runner} http://example.test/x\n`)
      expect(await text(sandbox, ask.replace("127.0.0.1", "[::1]"))).toBe(`${runner} http://example.test/x\n`)
    }
    expect(await text(sandbox, ask)).toMatch(refused)
    expect(await text(sandbox, "curl -sS -m 5 http://192.0.2.2/ 2>&1")).toMatch(/Couldn't connect|unreachable/)
    const tamper = "touch /run/warren/egress/x; rm -f /run/warren/egress/proxy.sock; mv /run/warren/egress /tmp"
    expect(await text(sandbox, `(${tamper}) 2>&1`, { user: "root" })).toMatch(/Read-only file system/)
    expect(await sandbox.stats()).toMatchObject({ receivedBytes: 0, sentBytes: 0 })
  })

  it("starts again with its proxy, and is adopted with it", async () => {
    const id = await fixture.create({ network: { mode: "proxy", folder }, profile: "strict", isRootReadOnly: true })
    await using _ = await proxy("here")
    expect(await text(await fixture.driver.start(id, never), ask)).toBe("here http://example.test/x\n")
    await fixture.driver.stop(id, 0)
    await fixture.driver.start(id, never)
    await fixture.close()
    await fixture.open()
    for await (const sandbox of fixture.driver.adopt(never)) {
      if (sandbox.id === id) expect(await text(sandbox, ask)).toBe("here http://example.test/x\n")
    }
    await fixture.driver.destroy(id)
  })

  it("stops at once although a connection is open", async () => {
    const sandbox = await fixture.start({ network: { mode: "proxy", folder } })
    await using _ = await proxy("here")
    const pids = pidsIn(fixture.root, sandbox.id).length
    await text(sandbox, `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${egressPort}; sleep 1000 >/dev/null 2>&1 &'`)
    expect(pidsIn(fixture.root, sandbox.id)).toHaveLength(pids + 2)
    const started = performance.now()
    await fixture.driver.stop(sandbox.id, 4_000)
    expect(performance.now() - started).toBeLessThan(3_000)
    await fixture.driver.destroy(sandbox.id)
  })

  it("costs no process and little memory until it is used", async () => {
    await using idle = await fixture.use({ network: { mode: "none" } })
    await using sandbox = await fixture.use({ network: { mode: "proxy", folder } })
    await using _ = await proxy("here")
    const pids = pidsIn(fixture.root, sandbox.id)
    expect(pids).toHaveLength(1)
    const before = (await sandbox.stats()).memoryBytes
    await text(sandbox, ask)
    const forwarder = pidsIn(fixture.root, sandbox.id).filter((pid) => !pids.includes(pid))
    expect(forwarder).toHaveLength(1)
    const rollup = readFileSync(`/proc/${forwarder[0]}/smaps_rollup`, "utf8")
    const own = [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].reduce((sum, [, kb]) => sum + Number(kb), 0)
    expect(own).toBeLessThan(256)
    console.log(`none ${(await idle.stats()).memoryBytes}, proxy unused ${before} bytes; the forwarder's own ${own} kB`)
  })

  it("is the host's with host, and says so", async () => {
    const server = createTcpServer((socket) => socket.end("hello from the host\n")).listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    await using sandbox = await fixture.use({ network: { mode: "host" } })
    const posture = await sandbox.posture()
    expect(posture.network?.mode).toBe("host")
    expect(posture.namespaces["net"]?.isOwn).toBe(false)
    expect(posture.degraded.join()).toMatch(/host's network/)
    expect(await text(sandbox, `bash -c 'cat </dev/tcp/127.0.0.1/${port}'`)).toBe("hello from the host\n")
    expect(await sandbox.stats()).toMatchObject({ receivedBytes: 0, sentBytes: 0 })
    server.close()
  })
})
