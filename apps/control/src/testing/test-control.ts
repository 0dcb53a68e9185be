import type { Server } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { serve } from "@hono/node-server"
import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import type { Hono } from "hono"
import { app } from "../app.ts"
import { openControl, type Control, type ControlOptions } from "../control.ts"
import { Metrics } from "../observe/metrics.ts"
import type { Traces } from "../observe/traces.ts"
import { TestRunner } from "./test-runner.ts"

export interface Ask {
  readonly method?: string
  readonly token?: string | undefined
  readonly cookie?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The address it comes from. */
  readonly from?: string
}

interface Answered {
  readonly status: number
  readonly body: any // oxlint-disable-line typescript/no-explicit-any -- a test reads whatever came
  readonly headers: Headers
  /** As the browser would send it back. */
  readonly cookie: string | undefined
}

interface Settings extends Partial<Pick<ControlOptions, "database" | "publicUrl" | "oidc" | "auditMax" | "owner">> {
  readonly traces?: Traces
}

const port = 7777

/** A whole control plane with a runner for its owner, asked through its door. */
export class TestControl implements AsyncDisposable {
  readonly clock: ManualClock
  readonly folder: TempFolder
  readonly control: Control
  readonly runner: TestRunner
  readonly lines: string[]
  readonly metrics = new Metrics()
  readonly #app: Hono
  readonly #scope: Scope
  isStopping = false

  private constructor(parts: {
    folder: TempFolder
    control: Control
    runner: TestRunner
    clock: ManualClock
    lines: string[]
    scope: Scope
    settings: Settings
    publicUrl: URL
  }) {
    this.folder = parts.folder
    this.control = parts.control
    this.runner = parts.runner
    this.clock = parts.clock
    this.lines = parts.lines
    this.#scope = parts.scope
    this.#app = app({
      ...{ control: parts.control, metrics: this.metrics, traces: parts.settings.traces, publicUrl: parts.publicUrl },
      ...{ port, clock: parts.clock, log: logOf(parts.lines), isStopping: () => this.isStopping },
    })
  }

  static async open(settings: Settings = {}): Promise<TestControl> {
    await using scope = new Scope()
    const folder = scope.use(await TempFolder.make())
    const clock = new ManualClock()
    const lines: string[] = []
    const owner = { name: "olga", socket: folder.at("olga.sock"), uid: process.getuid?.() ?? 0 }
    const publicUrl = settings.publicUrl ?? new URL(`http://localhost:${port}`)
    const control = scope.use(
      await openControl({
        ...{ folder: folder.path, database: folder.at("control.db"), owner, runners: "", oidc: undefined },
        ...{ requestsPerMinute: 600_000, auditMax: 0, clock, log: logOf(lines) },
        ...settings,
        publicUrl,
      }),
    )
    const keyFile = folder.at("statement.pub")
    const runner = scope.use(await TestRunner.open(owner.socket, { user: "olga", keyFile, now: () => clock.now() }))
    const parts = { folder, control, runner, clock, lines, settings, publicUrl }
    return new TestControl({ ...parts, scope: scope.move() })
  }

  async ask(path: string, { method, token, cookie, body, headers, from = "10.0.0.1" }: Ask = {}): Promise<Answered> {
    const response = await this.#app.request(
      `http://localhost:${port}${path}`,
      {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          host: `localhost:${port}`,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(cookie === undefined ? {} : { cookie, origin: `http://localhost:${port}` }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      },
      { incoming: { socket: { remoteAddress: from } } },
    )
    const text = await response.text()
    const setCookie = response.headers.getSetCookie().find((one) => one.includes("sign-in="))
    return {
      status: response.status,
      body: response.headers.get("content-type")?.includes("application/json") ? JSON.parse(text) : text,
      headers: response.headers,
      cookie: setCookie?.split(";")[0],
    }
  }

  /** The response as it comes, for what does not end. */
  async open(path: string, token: string, signal: AbortSignal): Promise<Response> {
    const headers = { host: `localhost:${port}`, authorization: `Bearer ${token}` }
    return this.#app.request(`http://localhost:${port}${path}`, { headers, signal })
  }

  /** The token in the owner's file. */
  async ownerToken(): Promise<string> {
    const { readFile } = await import("node:fs/promises")
    return (await readFile(this.folder.at("token"), "utf8")).trim()
  }

  /** A token with these scopes, of the owner or whoever `by` is. */
  async token(scopes: readonly string[], more: object = {}, by?: string): Promise<string> {
    const token = by ?? (await this.ownerToken())
    const { status, body } = await this.ask("/v1/tokens", { token, body: { scopes, ...more } })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return body.token
  }

  /** A user with a password, and the cookie of their browser. */
  async person(name: string, role = "member"): Promise<{ name: string; password: string; cookie: string }> {
    const token = await this.ownerToken()
    const { body } = await this.ask("/v1/invites", { token, body: { name, role } })
    const password = `the password of ${name}`
    const joined = await this.ask("/v1/invites/redeem", {
      body: { code: body.code, name, password },
      from: `for ${name}`,
    })
    if (joined.status !== 200) throw new Error(JSON.stringify(joined.body))
    return { name, password, cookie: joined.cookie ?? "" }
  }

  async audit(): Promise<{ action: string; result: string; [key: string]: unknown }[]> {
    const { body } = await this.ask("/v1/audit?limit=1000", { token: await this.ownerToken() })
    return body.items
  }

  /** A real server on a port of its own; requests to it name the usual host. */
  async listen(): Promise<{ server: Server; url: string }> {
    const server = serve({ fetch: this.#app.fetch, port: 0, hostname: "127.0.0.1" }) as Server
    await once(server, "listening")
    return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}

function logOf(lines: string[]): ReturnType<typeof createLog> {
  return createLog((line) => lines.push(line))
}
