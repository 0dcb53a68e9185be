import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { writeFileSync } from "node:fs"
import { ManualClock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { StatementSigner, type StatementFacts } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { AccessLog } from "../access-log.ts"
import { openControlDoor } from "../control-door.ts"

const fail = (thrown: unknown): never => {
  throw thrown
}

interface Made {
  name: string
  id: string
}

/** A runner's door for the control plane, with a few sessions behind it. */
export class Door implements AsyncDisposable {
  readonly clock = new ManualClock()
  readonly sessions: Made[] = []
  readonly key = generateKeyPairSync("ed25519")
  access!: AccessLog
  folder!: TempFolder
  client!: RpcClient<typeof userPlane>
  readonly #scope = new Scope()

  static async open(names: readonly string[] = []): Promise<Door> {
    const door = new Door()
    door.folder = door.#scope.use(await TempFolder.make())
    for (const name of names) door.#make(name)
    door.publish(door.key.publicKey)
    door.access = new AccessLog(door.folder.at("access.log"), door.clock, fail)
    door.#scope.use(
      await openControlDoor({
        ...{
          path: door.socket,
          group: process.getgid?.() ?? 0,
          keyFile: door.folder.at("statement.pub"),
          user: "alice",
        },
        ...{ plane: door.#plane(), access: door.access, clock: door.clock, log: silentLog, build: "x" },
      }),
    )
    door.client = door.#scope.use(new RpcClient(await connectUnix(door.socket), userPlane, "control"))
    return door
  }

  get socket(): string {
    return this.folder.at("c.sock")
  }

  publish(key: KeyObject): void {
    writeFileSync(this.folder.at("statement.pub"), key.export({ type: "spki", format: "pem" }))
  }

  statement(
    facts: Partial<StatementFacts> & Pick<StatementFacts, "call">,
    key: KeyObject = this.key.privateKey,
  ): string {
    const { scope } = userPlane[facts.call as keyof typeof userPlane]
    return new StatementSigner(key, () => this.clock.now()).sign({ user: "alice", scope, ...facts })
  }

  /** Asks as the control plane does: with a statement for exactly this. */
  ask(call: string, input: Record<string, unknown>, limits?: StatementFacts["limits"]): Promise<unknown> {
    const named = (input["session"] ?? (call.startsWith("session.") ? input["id"] : undefined)) as string | undefined
    const facts = { call, ...(named === undefined ? {} : { session: named }), ...(limits ? { limits } : {}) }
    return this.client.call(call as "session.get", input as { id: string }, { statement: this.statement(facts) })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }

  #make(name: string): Made {
    const made = { name, id: `ses_${name}` }
    this.sessions.push(made)
    return made
  }

  #find(which: string): Made {
    const found = this.sessions.find(({ id, name }) => id === which || name === which)
    if (found) return found
    throw new Fault("not_found", `there is no session ${JSON.stringify(which)}`, { subject: `session:${which}` })
  }

  #plane(): UserPlane {
    const known = {
      "session.get": async ({ id }: { id: string }) => shown(this.#find(id)),
      "session.list": async () => ({ items: this.sessions.map(shown) }),
      "session.create": async ({ name }: { name?: string }) => shown(this.#make(name ?? "made-up")),
      "session.getOrCreate": async () => ({ session: shown(this.#find("other-1")), isNew: false }),
      "session.fork": async ({ name }: { name?: string }) => ({ sessions: [shown(this.#make(name ?? "fork"))] }),
      "session.update": async ({ id, name }: { id: string; name?: string }) =>
        shown({ ...this.#find(id), name: name ?? "" }),
      "session.rollback": async ({ id }: { id: string }) => shown(this.#find(id)),
      "session.follow": async function* (this: void) {
        yield { seq: 1, item: { id: "ses_ci-1", event: "created", session: shown({ name: "ci-1", id: "ses_ci-1" }) } }
        yield {
          seq: 2,
          item: { id: "ses_other-1", event: "created", session: shown({ name: "other-1", id: "ses_other-1" }) },
        }
        yield { seq: 3, item: { id: "ses_other-1", event: "deleted" } }
        yield { seq: 4, item: { id: "ses_ci-1", event: "deleted" } }
      },
      "process.subscribeStdout": async function* (this: void, { session }: { session: string }) {
        yield { seq: 1, item: { line: session, stream: "stdout" } }
      },
      "snapshot.list": async ({ session }: { session: string }) => ({ items: [snapshot(`snp_${session}`, session)] }),
      "snapshot.delete": async () => ({ ok: true }),
      "chat.get": async ({ id }: { id: string }) => chat(id),
      "chat.list": async ({ sessionId }: { sessionId?: string }) => ({ items: [chat(`of-${sessionId ?? "all"}`)] }),
      "chat.messages": async () => ({ items: [], hasMore: false }),
      "logs.read": async () => ({ entries: [] }),
      "access.read": async ({ limit }: { limit: number }) => ({ entries: await this.access.read(limit) }),
    }
    return new Proxy(known, {
      get: (table, name) =>
        table[name as keyof typeof table] ?? (() => Promise.reject(new Fault("not_found", "not in this test"))),
    }) as unknown as UserPlane
  }
}

const time = new Date(0).toISOString()

function chat(id: string) {
  const sessionId = /^of-(.*)$/.exec(id)?.[1]
  const kind = sessionId === undefined ? "main" : "session"
  return { id, kind, ...(sessionId === undefined ? {} : { sessionId }), createdAt: time, updatedAt: time, lastSeq: 0 }
}

const snapshot = (id: string, session: string) => ({ id, session, image: "host", createdAt: time, isAutomatic: false })

function shown({ name, id }: Made) {
  return {
    ...{ id, name, labels: {}, state: "running", driver: "oci", image: "host", profile: "dev", env: [], secrets: [] },
    limits: { cpus: 1, memoryBytes: 2 ** 29, pidsMax: 64, openFilesMax: 64, diskBytes: 0 },
    ...{ network: { mode: "none" }, keys: [], createdAt: time, usedAt: time, acquireSource: "cold", acquireMs: 1 },
  }
}
