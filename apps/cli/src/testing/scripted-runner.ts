import { mkdir } from "node:fs/promises"
import type { Server, Socket } from "node:net"
import { dirname } from "node:path"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { Session } from "@warren/protocol/user-plane/session.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import type { z } from "zod"
import { ChildConversation } from "./child-conversation.ts"

type SessionData = z.output<typeof Session>

/** Answers the wire as a test wants it, on a real socket. Programs are programs of this machine. */
export class ScriptedRunner implements AsyncDisposable {
  readonly sessions = new Map<string, SessionData>()
  /** What was asked, in order. */
  readonly asked: { readonly name: string; readonly input: Record<string, unknown> }[] = []
  readonly programs = new Set<ChildConversation>()
  readonly #connections = new Map<Socket, RpcConnection<typeof userPlane>>()
  #server: Server | undefined

  static async start(home: string, own: Partial<UserPlane> = {}): Promise<ScriptedRunner> {
    const runner = new ScriptedRunner()
    const socket = rpcSocketOf(home)
    await mkdir(dirname(socket), { recursive: true })
    const handlers = runner.#noting({ ...runner.#handlers(), ...own })
    runner.#server = await listenUnix(socket, (client) => {
      const options = { contract: userPlane, handlers, log: silentLog, build: "scripted" }
      runner.#connections.set(client, new RpcConnection(client, { name: "tester" }, options))
      client.once("close", () => runner.#connections.delete(client))
    })
    return runner
  }

  inputOf(name: string): Record<string, unknown> | undefined {
    return this.asked.find((one) => one.name === name)?.input
  }

  /** Cuts every connection, as a runner does that is killed. */
  cut(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection[Symbol.asyncDispose]()))
    if (this.#server) await closeServer(this.#server, this.#connections.keys())
    for (const program of this.programs) await program[Symbol.asyncDispose]()
  }

  #handlers(): Partial<UserPlane> {
    return {
      "health.check": () => Promise.resolve(health),
      "session.create": (wishes) => {
        const session = sessionOf(wishes.name ?? `made-${this.sessions.size + 1}`)
        this.sessions.set(session.name, session)
        return Promise.resolve(session)
      },
      "session.get": ({ id }) => Promise.resolve(this.#session(id)),
      "session.list": () => Promise.resolve({ items: [...this.sessions.values()] }),
      "session.delete": ({ id }) => {
        this.sessions.delete(this.#session(id).name)
        return Promise.resolve({ ok: true as const })
      },
      "process.exec": async (input) => {
        this.#session(input.session)
        const program = await ChildConversation.start(input)
        this.programs.add(program)
        program.child.once("close", () => this.programs.delete(program))
        return program
      },
      "process.kill": ({ pid, signal }) => {
        for (const program of this.programs) if (program.child.pid === pid) program.kill(signal as NodeJS.Signals)
        return Promise.resolve({ wasRunning: true })
      },
    }
  }

  #session(id: string): SessionData {
    const found = [...this.sessions.values()].find((one) => one.id === id || one.name === id)
    if (!found) throw new Fault("not_found", `there is no session "${id}"`)
    return found
  }

  /** Writes down what is asked; what no test has said anything about is refused as an old runner would. */
  #noting(handlers: Partial<UserPlane>): UserPlane {
    const entries = Object.keys(userPlane).map((name) => {
      const handler = handlers[name as keyof UserPlane] as ((input: never, context: never) => unknown) | undefined
      const answer = (input: never, context: never): unknown => {
        this.asked.push({ name, input })
        if (!handler) throw new Fault("unsupported", `${name} is not part of this test`)
        return handler(input, context)
      }
      return [name, answer]
    })
    return Object.fromEntries(entries) as UserPlane
  }
}

const now = new Date().toISOString()
const health = {
  status: "ok" as const,
  user: "tester",
  version: "0",
  build: "scripted",
  pid: process.pid,
  startedAt: now,
  driver: "scripted",
  tools: { shell: true, browser: false },
  sessions: { running: 0, all: 0 },
  found: { adopted: 0, asleep: 0, lost: 0, forgotten: 0, waiting: 0, removed: 0 },
  degraded: [{ code: "no_browser", detail: "there is none" }],
}

export function sessionOf(name: string): SessionData {
  return Session.parse({
    id: `ses_${name}`,
    name,
    labels: {},
    state: "running",
    driver: "scripted",
    image: "host",
    profile: "dev",
    limits: { cpus: 1, memoryBytes: 2 ** 29, pidsMax: 512, openFilesMax: 4096, diskBytes: 0 },
    network: { mode: "none" },
    env: [],
    secrets: [],
    keys: [],
    createdAt: now,
    usedAt: now,
    acquireSource: "cold",
    acquireMs: 1,
  })
}
