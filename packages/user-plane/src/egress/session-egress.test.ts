import { once } from "node:events"
import { mkdir, stat } from "node:fs/promises"
import { request as httpRequest } from "node:http"
import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { eventually } from "@warren/base/testing/eventually.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { describe, expect, test } from "vitest"
import { Broker } from "../broker/broker.ts"
import { leaseMigrations, Leases } from "../broker/leases.ts"
import type { EgressPolicy } from "./policy.ts"
import { openEgress, type Credential, type SessionEgress } from "./session-egress.ts"
import { heard, Loopback } from "./testing/egress-system.ts"

const hour = 3_600_000

/** What a runner has for its sessions, which may be started again on the same folder. */
class Runner implements AsyncDisposable {
  readonly clock = new ManualClock()
  readonly lines: string[] = []
  /** Policies as they were kept, the newest last. */
  readonly kept: EgressPolicy[] = []
  /** Called while a policy is being kept. */
  onKeep: () => void = () => undefined
  readonly folder: TempFolder
  /** Of every session. */
  leases: Leases | undefined
  readonly #site: Loopback
  #scope = new Scope()

  constructor(folder: TempFolder, site: Loopback) {
    this.folder = folder
    this.#site = site
  }

  async start(credentials?: readonly Credential[]): Promise<SessionEgress> {
    const database = this.#scope.use(new Database(this.folder.at("runner.db"), { migrations: leaseMigrations }))
    const leases = (this.leases = new Leases(database, this.clock))
    const log = createLog((line) => this.lines.push(line))
    const upstream = `http://127.0.0.1:${this.#site.port}`
    const broker = new Broker({
      ...{ leases, log, clock: this.clock },
      keys: () => Promise.resolve({ value: "sk-real" }),
      upstreams: { anthropic: upstream },
    })
    this.#scope.use(broker)
    const egress = await openEgress({
      ...{ session: "ses_one", folder: this.folder.at("egress"), broker, leases, log, clock: this.clock },
      ...(credentials && { credentials }),
      policy: this.kept.at(-1) ?? this.policyFor("site.test"),
      keepPolicy: (policy) => {
        this.onKeep()
        this.kept.push(policy)
      },
      resolve: () => Promise.resolve(["127.0.0.1"]),
    })
    return this.#scope.use(egress)
  }

  policyFor(host: string): EgressPolicy {
    const { port } = this.#site
    return { mode: "list", allow: [`${host}:${port}`], allowPrivate: [`127.0.0.1:${port}`] }
  }

  get anthropic(): Credential {
    return { scope: "llm:anthropic", destination: `127.0.0.1:${this.#site.port}` }
  }

  /** What a program inside hears when it asks a host through the socket. */
  async ask(host: string): Promise<string> {
    const socket = await connectUnix(this.folder.at("egress", "proxy.sock"))
    const authority = `${host}:${this.#site.port}`
    socket.write(`GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`)
    return await heard(socket)
  }

  async askBroker(token: string | undefined): Promise<number | undefined> {
    const socketPath = this.folder.at("egress", "proxy.sock")
    const headers = { host: "broker.warren", "x-api-key": token ?? "" }
    const sent = httpRequest({ socketPath, path: "http://broker.warren/anthropic/v1/models", headers })
    sent.end()
    const [incoming] = (await once(sent, "response")) as [{ statusCode?: number; resume(): void }]
    incoming.resume()
    return incoming.statusCode
  }

  /** Ends as a process does: nothing is revoked. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.close()
    this.#scope = new Scope()
  }
}

async function withRunner(work: (runner: Runner, site: Loopback) => Promise<void>): Promise<void> {
  await using folder = await TempFolder.make()
  await using site = await Loopback.http((_, response) => void response.end("a page"))
  await using runner = new Runner(folder, site)
  await work(runner, site)
}

describe("a session's way out", () => {
  test("is a folder with a socket that anybody inside may use, also when it was there before", () =>
    withRunner(async (runner) => {
      await mkdir(runner.folder.at("egress"), { mode: 0o700 })
      const egress = await runner.start()
      expect((await stat(egress.folder)).mode & 0o777).toBe(0o755)
      expect((await stat(runner.folder.at("egress", "proxy.sock"))).mode & 0o777).toBe(0o666)
      expect(await runner.ask("site.test")).toContain("a page")
      expect(egress.counters()).toMatchObject({ allowed: 1, denied: 0 })
      await egress[Symbol.asyncDispose]()
      await egress[Symbol.asyncDispose]()
    }))

  test("keeps a policy before it is in force, cuts what it forbids, and has it after a restart", () =>
    withRunner(async (runner) => {
      const egress = await runner.start()
      const duringKeep: string[] = []
      runner.onKeep = () => duringKeep.push(egress.policy.allow.join())
      const [one, other] = [runner.policyFor("site.test").allow.join(), runner.policyFor("other.test").allow.join()]
      await egress.setPolicy(runner.policyFor("other.test"))
      expect(duringKeep).toEqual([one])
      expect(egress.policy.allow.join()).toBe(other)
      await expect(egress.setPolicy({ mode: "list", allow: ["*"] })).rejects.toThrow(/is not a rule/)
      runner.onKeep = () => {
        throw new Error("the disk is full")
      }
      await expect(egress.setPolicy({ mode: "none" })).rejects.toThrow(/disk is full/)
      expect(egress.policy.allow.join()).toBe(other)
      runner.onKeep = () => undefined
      await runner[Symbol.asyncDispose]()
      await runner.start()
      expect(await runner.ask("site.test")).toContain("x-warren-denied: not-listed")
      expect(await runner.ask("other.test")).toContain("a page")
    }))

  test("two changes at once come one after the other, and the last one holds", () =>
    withRunner(async (runner) => {
      const egress = await runner.start()
      await Promise.all([egress.setPolicy({ mode: "none" }), egress.setPolicy(runner.policyFor("last.test"))])
      expect(egress.policy).toEqual(runner.kept.at(-1))
      expect(egress.policy.mode).toBe("list")
    }))

  test("tells what it refused, since a number, with the reason", () =>
    withRunner(async (runner) => {
      const egress = await runner.start()
      await runner.ask("one.test")
      const [first] = egress.denials.since(0)
      await runner.ask("two.test")
      await runner.ask("two.test")
      const after = egress.denials.since(first?.seq ?? 0).map(({ item }) => [item.host, item.reason, item.count])
      expect(after).toEqual([
        ["two.test", "not-listed", 1],
        ["two.test", "not-listed", 2],
      ])
      expect(egress.denials.since(egress.denials.journal.last)).toEqual([])
      for (const foreign of [1, egress.denials.journal.last + 1]) {
        expect(() => egress.denials.since(foreign)).toThrow(/not kept/)
      }
    }))

  test("forgets old refusals, and says so", () =>
    withRunner(async (runner) => {
      const egress = await runner.start()
      const first = egress.denials.journal.last
      for (let i = 0; i < 5_000; i++) egress.denials.add("not-listed", { name: `${i}.test`, port: 443 }, "no")
      expect(() => egress.denials.since(first + 1)).toThrow(/not kept/)
      expect(egress.denials.since(0).length).toBeLessThanOrEqual(2_000)
      expect(egress.denials.since(0).at(-1)?.item.host).toBe("4999.test")
      expect(egress.denials.list()).toHaveLength(1_000)
    }))
})

describe("the keys of a session", () => {
  test("are leases in its environment, the same each time, renewed before they end", () =>
    withRunner(async (runner) => {
      const egress = await runner.start([runner.anthropic])
      const token = (): string => egress.environment()["ANTHROPIC_API_KEY"] ?? ""
      expect(egress.environment()).toMatchObject({
        ANTHROPIC_BASE_URL: "http://127.0.0.1:3128/anthropic",
        HTTPS_PROXY: "http://127.0.0.1:3128",
      })
      const first = token()
      expect(first).toMatch(/^lease_/)
      expect([token(), await runner.askBroker(first)]).toEqual([first, 200])
      await runner.clock.advance(13 * hour)
      const second = token()
      expect(second).not.toBe(first)
      expect([await runner.askBroker(first), await runner.askBroker(second)]).toEqual([200, 200])
      await runner.clock.advance(12 * hour)
      expect([await runner.askBroker(first), await runner.askBroker(second)]).toEqual([401, 200])
    }))

  test("work after a restart for programs that have the old one; there are never more than a few of each", () =>
    withRunner(async (runner) => {
      const tokens: string[] = []
      let egress: SessionEgress | undefined
      for (let starts = 0; starts < 20; starts++) {
        await runner[Symbol.asyncDispose]()
        egress = await runner.start([runner.anthropic, { scope: "git:read", destination: "github.com" }])
        tokens.push(egress.environment()["ANTHROPIC_API_KEY"] ?? "")
        await runner.clock.advance(1)
      }
      const scopes = egress?.leases().map(({ scope }) => scope) ?? []
      for (const one of ["llm:anthropic", "git:read"]) expect(scopes.filter((scope) => scope === one)).toHaveLength(8)
      const answers = [tokens.at(-1), tokens.at(-2), tokens.at(-8), tokens.at(-9)].map((one) => runner.askBroker(one))
      expect(await Promise.all(answers)).toEqual([200, 200, 200, 401])
    }))

  test("stay as they are for a runner that does not know yet what is lent; then the rest ends", () =>
    withRunner(async (runner) => {
      const token = (await runner.start([runner.anthropic])).environment()["ANTHROPIC_API_KEY"]
      await runner[Symbol.asyncDispose]()
      const next = await runner.start()
      expect(await runner.askBroker(token)).toBe(200)
      next.setCredentials([runner.anthropic])
      expect(await runner.askBroker(token)).toBe(200)
      next.setCredentials([{ scope: "git:read", destination: "github.com" }])
      expect(await runner.askBroker(token)).toBe(401)
    }))

  test("end when only one of scope and destination is still lent", () =>
    withRunner(async (runner) => {
      const egress = await runner.start([runner.anthropic])
      for (const other of [
        { scope: "llm:openai", destination: runner.anthropic.destination },
        { scope: runner.anthropic.scope, destination: "api.anthropic.com" },
      ] as const) {
        egress.setCredentials([runner.anthropic])
        const token = egress.environment()["ANTHROPIC_API_KEY"]
        expect(await runner.askBroker(token)).toBe(200)
        egress.setCredentials([other])
        expect(await runner.askBroker(token)).toBe(401)
      }
    }))

  test("of another session are not its to revoke", () =>
    withRunner(async (runner) => {
      const egress = await runner.start([runner.anthropic])
      const other = runner.leases?.grant({ session: "ses_two", ...runner.anthropic, ttlMs: hour })
      expect(other && egress.revoke(other.id)).toBe(false)
      expect(runner.leases?.list("ses_two")).toHaveLength(1)
    }))

  test("end when they are revoked, taken away, or when the session is over", () =>
    withRunner(async (runner) => {
      const egress = await runner.start([runner.anthropic])
      const token = (): string | undefined => egress.environment()["ANTHROPIC_API_KEY"]
      const first = token()
      const [lease] = egress.leases()
      expect(lease && egress.revoke(lease.id)).toBe(true)
      expect(lease && egress.revoke(lease.id)).toBe(false)
      const second = token()
      expect([await runner.askBroker(first), await runner.askBroker(second)]).toEqual([401, 200])
      egress.setCredentials([])
      expect([await runner.askBroker(second), token()]).toEqual([401, undefined])
      egress.setCredentials([runner.anthropic])
      const third = token()
      await egress.end()
      await egress.end()
      await runner[Symbol.asyncDispose]()
      const again = await runner.start()
      expect(again.leases()).toEqual([])
      expect(await runner.askBroker(third)).toBe(401)
      await eventually(() => runner.lines.length > 0)
      expect(runner.lines.join("")).not.toMatch(/lease_|sk-real/)
    }))
})
