import { createPrivateKey } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { connect, type AddressInfo, type Socket } from "node:net"
import { newId } from "@warren/base/id.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import { hashOf } from "../../secret.ts"
import type { UserRow } from "../../store/users.ts"
import { TestControl } from "../../testing/test-control.ts"
import { GatewayFront } from "../front.ts"

export const session = newId("ses")
export const base = `/s/${session}/t/3000`
export const uid = process.getuid?.() ?? 0

export interface Ask {
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** A public door, and behind it a session of bob's with a gateway that does what the path says. */
export class FrontWorld implements AsyncDisposable {
  readonly system: TestControl
  readonly bob: UserRow
  readonly front: GatewayFront
  readonly server: Server
  /** Where bob's runner is. */
  route: { socket: string; uid: number }
  readonly #scope = new Scope()

  private constructor(system: TestControl, bob: UserRow) {
    this.system = system
    this.bob = bob
    this.route = { socket: system.folder.at("bob.sock"), uid }
    const { control, metrics, clock } = system
    const names = { domain: "warren.localhost", hosts: new Set(["localhost:7777"]) }
    const parts = { names, scheme: "http", key: control.gatewayKey, metrics, clock, log: silentLog } as const
    this.#scope.use(system)
    this.front = this.#scope.use(new GatewayFront({ ...control, ...parts, routeOf: async () => this.route }))
    this.server = createServer((_, response) => response.end("the page"))
    this.server.on("upgrade", (_, socket) => socket.end("the API"))
    this.front.guard(this.server)
  }

  static async open(): Promise<FrontWorld> {
    const system = await TestControl.open()
    await system.person("bob")
    const bob = (await system.control.store.users.byName("bob")) as UserRow
    system.control.ownership.learn("session.get", bob.id, { id: session })
    const world = new FrontWorld(system, bob)
    const gateway = createServer(inside).on("upgrade", insideSocket)
    await world.#listen(gateway, system.folder.at("gateway.sock"))
    await world.#listen(world.server, 0)
    return world
  }

  get port(): number {
    return portOf(this.server)
  }

  /** The answer as it begins. */
  async begin(path: string, { host = "localhost:7777", headers = {} }: Ask = {}): Promise<IncomingMessage> {
    const { port } = this
    const sent = httpRequest({ port, host: "127.0.0.1", path, agent: false, headers: { host, ...headers } }).end()
    const [answer] = (await once(sent, "response")) as [IncomingMessage]
    answer.on("error", () => undefined)
    return answer
  }

  async ask(path: string, asked: Ask = {}) {
    const answer = await this.begin(path, asked)
    let body = ""
    for await (const piece of answer.setEncoding("utf8")) body += String(piece)
    return { status: answer.statusCode, headers: answer.headers, body }
  }

  /** What is said on a connection to the end of it. */
  async say(text: string): Promise<string> {
    const socket = this.connect()
    socket.write(text)
    let said = ""
    for await (const piece of socket.setEncoding("utf8")) said += String(piece)
    return said
  }

  connect(): Socket {
    return connect(this.port, "127.0.0.1").on("error", () => undefined)
  }

  tokenFor(via?: string, user = "bob", about = session): string {
    const key = createPrivateKey(readFileSync(this.system.folder.at("statement.key")))
    return signGatewayToken(key, { user, session: about, lifeS: 600, now: this.system.clock.now(), via })
  }

  /** A token of bob's, and how to take it back. */
  async viaOfBob(): Promise<{ id: string; revoke(): Promise<unknown> }> {
    const { system, bob } = this
    const { tokens } = system.control.store
    const id = newId("tok")
    const about = { label: "", scopes: "ports", namePrefix: undefined, sessionsMax: undefined, usedAt: undefined }
    const row = { ...about, id, userId: bob.id, hash: hashOf(id), requestsPerMinute: undefined, expiresAt: undefined }
    await tokens.add({ ...row, createdAt: system.clock.now() }, 100)
    return { id, revoke: () => tokens.revoke(bob.id, id) }
  }

  async noted(action: string) {
    return (await this.system.audit()).filter((one) => one.action === action)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }

  async #listen(server: Server, at: string | number): Promise<void> {
    if (typeof at === "string") server.listen(at)
    else server.listen(at, "127.0.0.1")
    this.#scope.defer(() => (server.closeAllConnections(), void server.close()))
    await once(server, "listening")
  }
}

export const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port
export const bearer = (token: string): Ask => ({ headers: { authorization: `Bearer ${token}` } })

export function socketTo(path: string, ...headers: string[]): string {
  const head = ["Host: localhost:7777", "Connection: Upgrade", "Upgrade: websocket", ...headers]
  return [`GET ${path} HTTP/1.1`, ...head, "", ""].join("\r\n")
}

/** What a runner's gateway would do, by the path. */
function inside(request: IncomingMessage, response: ServerResponse): void {
  const { url = "" } = request
  if (url.includes("/refuse")) response.setHeader("X-Warren-Refused", "forbidden").writeHead(403)
  if (url.includes("/break")) return void (response.write("half"), setImmediate(() => response.destroy()))
  if (url.includes("/hang")) return void response.write("begun")
  response.end(JSON.stringify({ url, headers: request.headers }))
}

function insideSocket(request: IncomingMessage, socket: Socket): void {
  if (request.url?.includes("/break")) return void socket.destroy()
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
  socket.on("error", () => socket.destroy())
}
