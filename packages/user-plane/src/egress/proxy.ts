import { chmod } from "node:fs/promises"
import type { Server, Socket } from "node:net"
import { Fault, isCancellation, messageOf } from "@warren/base/fault.ts"
import { silentLog, type Log } from "@warren/base/log.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import type { z } from "zod"
import { Client } from "./client.ts"
import { Denials } from "./denials.ts"
import { Denied } from "./denied.ts"
import type { Target } from "./host.ts"
import { HttpFront, type LocalHandler, type TunnelReply } from "./http-front.ts"
import { defaultEgressLimits, type EgressLimits } from "./limits.ts"
import { Policy, type EgressPolicy } from "./policy.ts"
import { readHead } from "./read-head.ts"
import { resolveByDns, type Resolve } from "./resolver.ts"
import { Routes } from "./routes.ts"
import { socksReply, socksTarget, socksVersion } from "./socks.ts"
import { tunnel } from "./tunnel.ts"

export interface EgressOptions {
  /** The socket. Its folder is the one that the driver binds into this sandbox, and no other. */
  readonly path: string
  /** Who may connect: the owner, unless the folder lets through only those who should. */
  readonly socketMode?: number
  readonly policy: z.input<typeof EgressPolicy>
  readonly resolve?: Resolve
  readonly limits?: Partial<EgressLimits>
  /** Answers what is asked of the proxy itself (`/anthropic/…`) and of `broker.warren`. */
  readonly local?: LocalHandler
  readonly log?: Log
  readonly now?: () => number
}

export interface EgressCounters {
  readonly connections: number
  readonly allowed: number
  readonly denied: number
  readonly open: number
  readonly sentBytes: number
  readonly receivedBytes: number
}

const nowhere = { name: "", port: 0 }

/** The one way out of one sandbox: HTTP proxy, CONNECT and SOCKS5 on one Unix socket, told apart by the first byte. */
export class EgressProxy implements AsyncDisposable {
  readonly denials: Denials
  readonly #routes: Routes
  readonly #limits: EgressLimits
  readonly #front: HttpFront
  readonly #log: Log
  readonly #hasLocal: boolean
  readonly #clients = new Set<Client>()
  #server: Server | undefined

  private constructor(options: EgressOptions) {
    this.#limits = { ...defaultEgressLimits, ...options.limits }
    this.#log = options.log ?? silentLog
    this.#hasLocal = options.local !== undefined
    this.denials = new Denials(options.now ?? Date.now)
    this.#routes = new Routes(new Policy(options.policy), options.resolve ?? resolveByDns, this.#limits)
    this.#front = new HttpFront({
      routes: this.#routes,
      limits: this.#limits,
      local: options.local,
      tunnel: (client, target, reply) => this.#tunnel(client, target, reply),
      report: (thrown, target) => this.#report(thrown, target),
    })
  }

  static async listen(options: EgressOptions): Promise<EgressProxy> {
    const proxy = new EgressProxy(options)
    proxy.#server = await listenUnix(options.path, (socket) => proxy.#accept(socket))
    if (options.socketMode !== undefined) await chmod(options.path, options.socketMode)
    return proxy
  }

  get policy(): EgressPolicy {
    return this.#routes.policy.data
  }

  /** From now on this holds, for what is open too. Says how many connections were cut. */
  replacePolicy(policy: z.input<typeof EgressPolicy>): number {
    return this.#routes.replace(new Policy(policy))
  }

  degraded(): string[] {
    return this.#routes.policy.degraded()
  }

  counters(): EgressCounters {
    const { opened, ...rest } = this.#routes.counters()
    return { ...rest, connections: this.#clients.size, allowed: opened, denied: this.denials.total }
  }

  /** Cuts everything. May be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.#routes.close()
    if (server)
      await closeServer(
        server,
        [...this.#clients].map(({ socket }) => socket),
      )
  }

  #accept(socket: Socket): void {
    if (this.#clients.size >= this.#limits.connectionsMax) {
      this.#report(new Denied("limit", `more than ${this.#limits.connectionsMax} connections`), undefined)
      return void socket.destroy()
    }
    const client = new Client(socket, this.#limits.idleMs, (late) => this.#late(late))
    this.#clients.add(client)
    socket.once("close", () => this.#clients.delete(client))
    // Whatever goes wrong here is this connection's own affair.
    this.#serve(client).catch((thrown: unknown) => {
      this.#report(thrown, undefined)
      socket.destroy()
    })
  }

  async #serve(client: Client): Promise<void> {
    const { socket } = client
    client.expect(this.#limits.handshakeMs)
    const first = await readHead(socket, 1, (bytes) => ({ value: bytes[0], used: 0 }))
    if (first !== socksVersion) return this.#front.accept(client)
    let target: Target
    try {
      target = await socksTarget(socket)
    } catch (thrown) {
      const fault = this.#report(thrown, undefined)
      return void socket.end(socksReply(fault.code), () => socket.destroy())
    }
    client.relax()
    await this.#tunnel(client, target, {
      accept: () => void socket.write(socksReply()),
      refuse: (fault) => void socket.end(socksReply(fault.code), () => socket.destroy()),
    })
  }

  async #tunnel(client: Client, target: Target, reply: TunnelReply): Promise<void> {
    let isOpen = false
    const accept = (): void => {
      isOpen = true
      reply.accept()
    }
    try {
      await tunnel(
        client,
        target,
        { ...reply, accept },
        {
          routes: this.#routes,
          limits: this.#limits,
          hasLocal: this.#hasLocal,
          http: (one, fixed) => this.#front.accept(one, fixed),
        },
      )
    } catch (thrown) {
      const fault = this.#report(thrown, target)
      if (isOpen) client.socket.destroySoon()
      else reply.refuse(fault)
    }
  }

  #late(client: Client): void {
    this.#report(new Denied("slow", "no complete request in time"), client.fixed?.target)
    client.socket.destroy()
  }

  /** The one place where what went wrong is written down: a refusal for the person, a bug for us, a farewell for nobody. */
  #report(thrown: unknown, target: Target | undefined): Fault {
    const fault = Fault.from(thrown)
    if (fault instanceof Denied) this.denials.add(fault.reason, fault.where ?? target ?? nowhere, fault.message)
    else if (!isCancellation(thrown)) {
      const stack = thrown instanceof Error ? thrown.stack : undefined
      this.#log("error", "egress.bug", { message: messageOf(thrown), stack })
    }
    return fault
  }
}
