import { setTimeout as pause } from "node:timers/promises"
import { Http } from "@warren/sdk/http.ts"
import type { Process } from "@warren/sdk/process.ts"
import type { ApiSystem } from "../system.ts"
import { EventFollower, EventRunner, lastName, Looker, SocketFollower, SocketRunner } from "./askers.ts"
import type { Client, Ground } from "./client.ts"
import { MemoryMaker, SessionMaker, TokenMaker, Writer } from "./makers.ts"
import { countedBytes, counting, EventReader, PollingReader, SocketReader } from "./readers.ts"

const lookMs = 20
const plain = { network: { mode: "none" } } as const

/** Clients of every kind at once. Whatever happens to the control plane meanwhile, each gets exactly what it should. */
export class Load {
  readonly #system: ApiSystem
  readonly #ground: Ground
  readonly #enough: AbortController
  readonly #clients: readonly Client[]
  readonly #followers: readonly [EventFollower, SocketFollower]
  readonly #makers: readonly [SessionMaker, SessionMaker, MemoryMaker, MemoryMaker, TokenMaker]
  readonly #ended: Promise<void>[]
  #failure: Error | undefined

  private constructor(system: ApiSystem, ground: Ground, enough: AbortController, programs: readonly Process[]) {
    this.#system = system
    this.#ground = ground
    this.#enough = enough
    const [echo, ...counters] = programs
    if (!echo) throw new Error("nothing to write to")
    this.#followers = [new EventFollower(ground, "feed"), new SocketFollower(ground, "feed-socket")]
    const sessions = [new SessionMaker(ground, "made-a"), new SessionMaker(ground, "made-b")] as const
    const memories = [new MemoryMaker(ground, "memory-a"), new MemoryMaker(ground, "memory-b")] as const
    this.#makers = [...sessions, ...memories, new TokenMaker(ground, "token")]
    const readers = counters.flatMap((process) => [
      new EventReader(ground, "events", process),
      new SocketReader(ground, "socket", process),
      new PollingReader(ground, "polls", process),
    ])
    const runners = [new EventRunner(ground, "exec"), new SocketRunner(ground, "exec-socket")]
    const lookers = [new Looker(ground, "look-a"), new Looker(ground, "look-b")]
    const others = [...readers, ...runners, ...lookers, new Writer(ground, echo)]
    this.#clients = [...this.#followers, ...this.#makers, ...others]
    this.#ended = this.#clients.map((client) => this.#run(client))
  }

  static async start(system: ApiSystem): Promise<Load> {
    const { warren, url, token } = system
    const session = (await warren.sessions.create({ ...plain, name: "load" })).keep()
    const echo = await session.spawn(["cat"], { stdin: true })
    const counters = await Promise.all([1, 2, 3].map(() => session.spawn(counting, { replayBytes: countedBytes })))
    const enough = new AbortController()
    const http = new Http({ url, token, fetch })
    return new Load(system, { url, token, warren, http, session, enough: enough.signal }, enough, [echo, ...counters])
  }

  get size(): number {
    return this.#clients.length
  }

  /** Resolves when every client has got something since; throws what one of them failed with. */
  async goesOn(): Promise<void> {
    const before = this.#clients.map(({ steps }) => steps)
    const waits = (): boolean => this.#clients.some(({ steps }, index) => steps === before[index])
    while (waits()) {
      this.throwFailure()
      // Something has to happen for those who follow.
      await this.#ground.session.update({ labels: { at: String(Date.now()) } }).catch(() => undefined)
      await pause(lookMs)
    }
  }

  /** Ends it in order, and looks at what all have got. Resolves with how often clients had to come back. */
  async finish(): Promise<{ readonly returns: number; readonly made: number }> {
    const { session } = this.#ground
    await session.exec("touch /tmp/enough")
    this.#enough.abort()
    const [a, b] = this.#followers
    const others = this.#clients.filter((client) => client !== a && client !== b)
    await Promise.all(others.map(async (client) => this.#ended[this.#clients.indexOf(client)]))
    this.throwFailure()
    await session.update({ name: lastName })
    await Promise.all(this.#ended)
    this.throwFailure()
    if (a.resyncs + b.resyncs === 0) a.check(a.told.join() === b.told.join(), "the two feeds differ")
    await this.#sameAsAcknowledged()
    const returns = this.#clients.reduce((sum, client) => sum + client.returns, 0)
    return { returns, made: this.#makers.reduce((sum, { made }) => sum + made.size, 0) }
  }

  /** What the first of them failed with. */
  throwFailure(): void {
    if (this.#failure) throw this.#failure
  }

  async #run(client: Client): Promise<void> {
    try {
      await client.run()
    } catch (thrown) {
      this.#failure ??= thrown instanceof Error ? thrown : new Error(String(thrown))
    }
  }

  /** Everything acknowledged is there once, and nothing else is. */
  async #sameAsAcknowledged(): Promise<void> {
    const { warren, session } = this.#ground
    const [a, b, memoriesA, memoriesB, tokens] = this.#makers
    const ids: string[] = []
    for await (const { id } of warren.sessions.list()) ids.push(id)
    same("sessions", ids, [session.id, ...a.made.values(), ...b.made.values()])
    for (const follower of this.#followers) same(follower.name, [...follower.heard], ids)
    for (const maker of [memoriesA, memoriesB]) {
      const kept: string[] = []
      for await (const { id } of warren.memories.list({ tag: maker.name })) kept.push(id)
      same(maker.name, kept, [...maker.made.values()])
    }
    const { items } = (await (await this.#system.fetch("/v1/tokens")).json()) as { items: { id: string }[] }
    // Who is killed between making a token and noting its answer has made one that nobody was told: only that much more.
    const acknowledged = new Set(tokens.made.values())
    const known = items.map(({ id }) => id).filter((id) => acknowledged.has(id))
    same("tokens", known, [...acknowledged])
    for (const id of [...a.made.values(), ...b.made.values()]) await (await warren.sessions.get(id)).delete()
  }
}

function same(what: string, found: readonly string[], made: readonly string[]): void {
  if (found.toSorted().join() === made.toSorted().join()) return
  const [extra, lost] = [found.filter((id) => !made.includes(id)), made.filter((id) => !found.includes(id))]
  throw new Error(
    `${what}: ${found.length} are there, ${made.length} were acknowledged; ${extra.join()} besides, ${lost.join()} lost`,
  )
}
