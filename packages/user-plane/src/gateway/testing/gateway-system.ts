import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock, type Clock } from "@warren/base/clock.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { signGatewayToken, verifyGatewayToken } from "@warren/protocol/gateway-token.ts"
import { Asking } from "../../conformance.ts"
import { dataCalls } from "@warren/protocol/user-plane.ts"
import { openUserPlane, type LocalUserPlane } from "../../user-plane.ts"
import type { HostNames } from "../authority.ts"
import { Gateway } from "../gateway.ts"
import type { GatewayNote } from "../notes.ts"
import { HttpDoor, type Answer, type Ask } from "./http-door.ts"

const dist = resolve(import.meta.dirname, "../../../../../dist")
const serverText = readFileSync(join(import.meta.dirname, "inside-server.cjs"), "utf8")
export const user = "alice"
export const insidePort = 3000

/** What a token is to be. */
interface Changes {
  readonly user?: string
  readonly lifeS?: number
  readonly at?: number
  readonly port?: number
  readonly tools?: boolean
  readonly via?: string
  readonly key?: KeyObject
}

/** Time as it is, with a jump that tests make. */
class ShiftedClock implements Clock {
  shiftMs = 0
  now = (): number => Date.now() + this.shiftMs
  monotonic = (): number => performance.now() + this.shiftMs
  sleep = (ms: number, signal?: AbortSignal): Promise<void> => systemClock.sleep(ms, signal)
}

/** A gateway before a real user plane with real sandboxes, and the keys of a control plane. */
export class GatewaySystem implements AsyncDisposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "wg-")))
  readonly socket = join(this.root, "gateway.sock")
  readonly clock = new ShiftedClock()
  readonly notes: GatewayNote[] = []
  readonly key: KeyObject
  readonly names: HostNames = { domain: "warren.localhost", hosts: ["localhost", "127.0.0.1"] }
  readonly #public: KeyObject
  readonly #scope = new Scope()
  readonly #door = new HttpDoor({ socketPath: this.socket }, "localhost")
  #plane: LocalUserPlane | undefined

  constructor() {
    const pair = generateKeyPairSync("ed25519")
    this.key = pair.privateKey
    this.#public = pair.publicKey
  }

  get plane(): LocalUserPlane {
    if (!this.#plane) throw new Error("it is not open")
    return this.#plane
  }

  get ask(): Asking {
    return new Asking(dataCalls, () => this.plane.handlers)
  }

  async open(): Promise<void> {
    const { root } = this
    const program = (name: string): string => join(dist, name)
    const programs = { init: program("warren-init"), launch: program("warren-launch"), libraries: program("crun-lib") }
    const driver = this.#scope.use(
      await openOciDriver({ root: join(root, "oci"), programs, log: silentLog, volume: { firstBytes: 2 ** 30 } }),
    )
    this.#plane = this.#scope.use(
      await openUserPlane({
        ...{ root, drivers: [driver], image: "host", sqlProgram: program("sql.js"), recipes: program("images") },
        supervisorProgram: program("supervisor.js"),
        upstreams: { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com" },
        ...{ env: {}, sessionsMax: 100, poolBytes: 0, poolLeast: 0, clock: systemClock, log: silentLog },
      }),
    )
    this.#scope.use(await this.gateway(this.socket, this.names))
  }

  gateway(path: string, names: HostNames): Promise<Gateway> {
    const { sessions } = this.plane.engine
    const access = {
      add: (note: GatewayNote) => void this.notes.push(note),
      refuse: (note: GatewayNote) => void this.notes.push(note),
    }
    const verify = (token: string) => verifyGatewayToken(token, { keys: [this.#public], user, now: this.clock.now() })
    const { clock } = this
    const { tunnels, terminals, services } = this.plane
    const parts = { sessions, tunnels, terminals, services, names, clock, access, verify }
    return Gateway.open({ path, ...parts, pages: join(dist, "web"), log: silentLog })
  }

  /** A session with the test's web server in it. */
  async session(wishes: object = {}): Promise<string> {
    const { id } = await this.ask.call("session.create", { network: { mode: "none" }, ...wishes })
    await this.serve(id)
    return id
  }

  async serve(id: string, port = insidePort): Promise<number> {
    await this.ask.write(id, "/tmp/server.cjs", serverText)
    const { pid } = await this.ask.call("process.spawn", {
      session: id,
      argv: ["node", "/tmp/server.cjs", String(port)],
    })
    await this.ask.run(id, `until bash -c '< /dev/tcp/127.0.0.1/${port}' 2>/dev/null; do sleep 0.02; done`)
    return pid
  }

  token(session: string, changes: Changes = {}): string {
    const { user: whose = user, lifeS = 600, at = this.clock.now(), key = this.key, ...more } = changes
    return signGatewayToken(key, { user: whose, session, lifeS, now: at, ...more })
  }

  bearer(session: string, port?: number): { authorization: string } {
    return { authorization: `Bearer ${this.token(session, port === undefined ? {} : { port })}` }
  }

  ownHost(session: string, target: string | number = insidePort): string {
    return `${target}-${session.slice(4)}.warren.localhost`
  }

  /** A browser that was let in at the preview's own host name: what it sends from then on. */
  async browser(
    session: string,
    target: string | number = insidePort,
  ): Promise<{ host: string; cookie: string; origin: string }> {
    const host = this.ownHost(session, target)
    const { headers } = await this.get(`/?token=${this.token(session)}`, { host })
    const cookie = headers["set-cookie"]?.[0]?.split(";")[0] ?? ""
    return { host, cookie, origin: `http://${host}` }
  }

  get(path: string, asked: Ask = {}): Promise<Answer<string>> {
    return this.getAt(this.socket, path, asked)
  }

  async getAt(socketPath: string, path: string, asked: Ask): Promise<Answer<string>> {
    const answer = await new HttpDoor({ socketPath }, "localhost").get(path, asked)
    return { ...answer, body: answer.body.toString() }
  }

  /** What a raw text is answered with, up to the end of the connection. */
  say(text: string): Promise<string> {
    return this.#door.say(text)
  }

  /** Opens a WebSocket by hand; resolves with the head of the answer, and the connection after it. */
  upgrade(path: string, asked?: Parameters<HttpDoor["upgrade"]>[1]): ReturnType<HttpDoor["upgrade"]> {
    return this.#door.upgrade(path, asked)
  }

  /** What the web server inside has seen. */
  async seen(session: string): Promise<Record<string, number>> {
    const { body } = await this.get(`/s/${session}/t/${insidePort}/seen`, { headers: this.bearer(session) })
    return JSON.parse(body) as Record<string, number>
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#plane) {
      const { items } = await this.ask.call("session.list", { limit: 200 })
      for (const { id } of items) await this.ask.call("session.delete", { id })
    }
    await this.#scope.close()
    rmSync(this.root, { recursive: true, force: true })
  }
}
