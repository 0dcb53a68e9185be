import { connectUnix } from "@warren/base/unix-socket.ts"
import type { Answer, Asked, CallName, Down, FeedName, StreamName, Up } from "@warren/protocol/contract.ts"
import { Chunk, type Conversation } from "@warren/protocol/conversation.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { openStream } from "@warren/protocol/rpc/stream.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"

export type Plane = typeof userPlane
export type SessionData = Answer<Plane, "session.get">
export type SnapshotData = Answer<Plane, "snapshot.create">

export interface Ran {
  readonly text: string
  readonly exitCode: number | null
  readonly reason: string
}

/** What a client does with a runner, over its socket and nothing else. */
export class Talk implements AsyncDisposable {
  readonly #socket: string
  readonly #client: RpcClient<Plane>

  private constructor(socket: string, client: RpcClient<Plane>) {
    this.#socket = socket
    this.#client = client
  }

  static async connect(socket: string): Promise<Talk> {
    return new Talk(socket, new RpcClient(await connectUnix(socket), userPlane, "e2e"))
  }

  call<K extends CallName<Plane>>(
    name: K,
    input: Asked<Plane, K>,
    options: { timeoutMs?: number; signal?: AbortSignal; key?: string } = {},
  ): Promise<Answer<Plane, K>> {
    return this.#client.call(name, input, options)
  }

  feed<K extends FeedName<Plane>>(name: K, input: Asked<Plane, K>) {
    return this.#client.feed(name, input)
  }

  async open<K extends StreamName<Plane>>(
    name: K,
    input: Asked<Plane, K>,
  ): Promise<Conversation<Up<Plane, K>, Down<Plane, K>>> {
    return openStream(await connectUnix(this.#socket), userPlane, name, input)
  }

  /** Resolves when the command has ended. */
  async run(session: string, cmd: string, more: { user?: string } = {}): Promise<Ran> {
    await using talk = await this.open("process.exec", { session, cmd, ...more })
    return await this.#heard(talk, "exit")
  }

  async runInShell(session: string, shell: string, cmd: string): Promise<Ran> {
    await using talk = await this.open("shell.run", { session, shell, cmd })
    return await this.#heard(talk, "done")
  }

  /** Resolves when all of it is there. */
  async write(session: string, path: string, text: string): Promise<void> {
    await using talk = await this.open("file.write", { session, path })
    await talk.write(Buffer.from(text))
    talk.send({ op: "eof" })
    if ((await talk.next()) === undefined) throw new Error("nobody said that it was written")
  }

  async read(session: string, path: string): Promise<string> {
    await using talk = await this.open("file.read", { session, path })
    const pieces: Buffer[] = []
    for (let item = await talk.next(); item !== undefined; item = await talk.next())
      if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
    return Buffer.concat(pieces).toString()
  }

  async sessions(): Promise<SessionData[]> {
    return (await this.call("session.list", { limit: 200 })).items
  }

  async snapshots(): Promise<SnapshotData[]> {
    return (await this.call("snapshot.list", { limit: 200 })).items
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]()
  }

  async #heard(talk: Conversation<unknown, { ev: string }>, last: string): Promise<Ran> {
    let text = ""
    for (;;) {
      const item = await talk.next()
      if (item === undefined) throw new Error(`it ended without ${last}`)
      if (item instanceof Chunk) text += item.bytes.toString()
      else if (item.ev === last) return { ...(item as unknown as Ran), text }
    }
  }
}
