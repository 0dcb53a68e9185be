import { createServer as createHttp, type RequestListener } from "node:http"
import { createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { once } from "node:events"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { closeServer, connectUnix } from "@warren/base/unix-socket.ts"
import { EgressProxy, type EgressOptions } from "../proxy.ts"

/** A proxy on a real socket, with names that lead where a test says, and servers on loopback. */
export class EgressSystem implements AsyncDisposable {
  readonly proxy: EgressProxy
  readonly socket: string
  /** What the resolver was asked. */
  readonly asked: string[]
  readonly #scope: Scope

  private constructor(scope: Scope, proxy: EgressProxy, socket: string, asked: string[]) {
    this.#scope = scope
    this.proxy = proxy
    this.socket = socket
    this.asked = asked
  }

  static async start(
    options: Omit<EgressOptions, "path" | "resolve"> & { names?: Record<string, readonly string[]> | undefined },
  ): Promise<EgressSystem> {
    const scope = new Scope()
    const folder = scope.use(await TempFolder.make())
    const asked: string[] = []
    const resolve = (name: string): Promise<readonly string[]> => {
      asked.push(name)
      return Promise.resolve(options.names?.[name] ?? [])
    }
    const proxy = scope.use(await EgressProxy.listen({ ...options, path: folder.at("egress.sock"), resolve }))
    return new EgressSystem(scope, proxy, folder.at("egress.sock"), asked)
  }

  connect(): Promise<Socket> {
    return connectUnix(this.socket).then((socket) => socket.on("error", () => undefined))
  }

  /** Says something and hears everything until the other side has ended. */
  async say(text: string | Buffer): Promise<string> {
    const socket = await this.connect()
    const answer = heard(socket)
    socket.write(text)
    return await answer
  }

  /** What was refused, as `reason host port`, the latest first. */
  get refused(): string[] {
    return this.proxy.denials.list().map(({ reason, host, port }) => `${reason} ${host} ${port}`)
  }

  /** A TCP port that leads to the egress socket: what init does inside. */
  async forwarder(): Promise<number> {
    const sockets = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket.on("error", () => undefined))
      void this.connect().then((other) => {
        other.allowHalfOpen = true
        socket.pipe(other).pipe(socket)
        other.once("close", () => socket.destroy())
        socket.once("close", () => other.destroy())
      })
    })
    this.#scope.defer(() => closeServer(server, sockets))
    return await portOf(server)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}

/** A server on loopback, closed with its connections. */
export class Loopback implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  accepted = 0

  private constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
    server.on("connection", (socket) => {
      this.accepted++
      this.#sockets.add(socket.on("error", () => undefined))
      socket.once("close", () => this.#sockets.delete(socket))
    })
  }

  static async of(server: Server): Promise<Loopback> {
    return new Loopback(server, await portOf(server))
  }

  static http(listener: RequestListener): Promise<Loopback> {
    return Loopback.of(createHttp(listener))
  }

  static tcp(onConnection: (socket: Socket) => void): Promise<Loopback> {
    return Loopback.of(createServer({ allowHalfOpen: true }, onConnection))
  }

  get open(): number {
    return this.#sockets.size
  }

  [Symbol.asyncDispose](): Promise<void> {
    return closeServer(this.#server, this.#sockets)
  }
}

/** Lets one server be reached under a name. */
export function reachable(
  name: string,
  port: number,
): Pick<EgressOptions, "policy"> & { names: Record<string, string[]> } {
  return {
    policy: { mode: "list", allow: [`${name}:${port}`], allowPrivate: [`127.0.0.1:${port}`] },
    names: { [name]: ["127.0.0.1"] },
  }
}

export async function heard(socket: Socket): Promise<string> {
  let text = ""
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
  if (!socket.closed) await new Promise<unknown>((resolve) => socket.once("end", resolve).once("close", resolve))
  return text
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}
