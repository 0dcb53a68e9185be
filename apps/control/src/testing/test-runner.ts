import { createPublicKey } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Server, Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { closeServer, listenUnix } from "@warren/base/unix-socket.ts"
import type { Context } from "@warren/protocol/contract.ts"
import { RpcConnection } from "@warren/protocol/rpc/server.ts"
import { StatementVerifier, type Statement } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"

/** The other end of a control plane's wire: checks statements as a runner does, and answers a few calls. */
export class TestRunner implements AsyncDisposable {
  /** The statements that came with what was asked. */
  readonly statements: Statement[] = []
  readonly #server: Server
  readonly #sockets: Set<Socket>

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server
    this.#sockets = sockets
  }

  static async open(path: string, options: { user: string; keyFile: string; now: () => number }): Promise<TestRunner> {
    const sockets = new Set<Socket>()
    const keys = (): ReturnType<typeof createPublicKey>[] => [createPublicKey(readFileSync(options.keyFile, "utf8"))]
    const verifier = new StatementVerifier({ user: options.user, now: options.now, keys })
    const admit = (asked: { call: string; in: unknown; statement: string | undefined }) => {
      const scope = userPlane[asked.call as keyof typeof userPlane].scope
      const statement = verifier.check({ ...asked, scope })
      runner.statements.push(statement)
      return { caller: { name: statement.user }, ended: () => undefined }
    }
    const server = await listenUnix(path, (socket) => {
      sockets.add(socket)
      const handlers = answers(options.user)
      void new RpcConnection(socket, { name: "" }, { contract: userPlane, handlers, log: silentLog, build: "x", admit })
    })
    const runner = new TestRunner(server, sockets)
    return runner
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeServer(this.#server, this.#sockets)
  }
}

export const sessionId = "ses_0123456789abcdefghjk"

function answers(user: string): UserPlane {
  const time = new Date(0).toISOString()
  const session = {
    ...{ id: sessionId, name: "work", labels: {}, state: "running", driver: "oci", image: "host", profile: "dev" },
    limits: { cpus: 1, memoryBytes: 2 ** 29, pidsMax: 64, openFilesMax: 64, diskBytes: 0 },
    ...{ network: { mode: "none" }, env: [], secrets: [], keys: [], createdAt: time, usedAt: time },
    ...{ acquireSource: "cold", acquireMs: 1 },
  }
  const known: Record<string, unknown> = {
    "health.check": async () => ({
      ...{ status: "ok", user, version: "1", build: "x", pid: 1, startedAt: time, driver: "oci", degraded: [] },
      ...{ tools: { shell: true, browser: false }, sessions: { running: 0, all: 0 } },
      found: { adopted: 0, asleep: 0, lost: 0, forgotten: 0, waiting: 0, removed: 0 },
    }),
    "session.create": async () => session,
    "session.get": async ({ id }: { id: string }) => {
      if (id === sessionId || id === "work") return session
      throw new Fault("not_found", `there is no session ${JSON.stringify(id)}`)
    },
    "session.follow": async function* (_: unknown, { signal }: Context) {
      yield { seq: 1, item: { id: sessionId, event: "created" } }
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
    },
  }
  const missing = () => Promise.reject(new Fault("not_found", "there is no such thing here"))
  return new Proxy(known, { get: (table, name) => table[String(name)] ?? missing }) as unknown as UserPlane
}
