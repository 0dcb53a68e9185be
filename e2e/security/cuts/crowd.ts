import type { Http } from "@warren/sdk/http.ts"
import type { Session } from "@warren/sdk/session.ts"
import type { Chance } from "../../api/chance.ts"
import { EventFollower, EventRunner, lastName, SocketFollower } from "../../api/load/askers.ts"
import type { Client, Ground } from "../../api/load/client.ts"
import { Writer } from "../../api/load/makers.ts"
import { countedBytes, counting, EventReader, PollingReader, SocketReader } from "../../api/load/readers.ts"
import { FeedListener, Prompter, SocketListener } from "./talkers.ts"
import { Onlooker, parrot, Typist } from "./typist.ts"

const terminals = ["first", "second", "third", "fourth"]
const counters = 3

/** The two lines there are: one that is cut, and one to prepare things on and to look at what came of them. */
export interface Lines {
  readonly ground: Ground
  readonly direct: Http
  /** The session as it is reached directly. */
  readonly session: Session
}

/** Everybody who can come back, on one line: readers of programs and feeds, an agent's user, people at terminals. */
export class Crowd {
  readonly listeners: readonly [FeedListener, SocketListener]
  readonly followers: readonly [EventFollower, SocketFollower]
  readonly prompter: Prompter
  readonly typists: readonly Typist[]
  readonly onlookers: readonly Onlooker[]
  readonly clients: readonly Client[]
  readonly failures: unknown[] = []
  readonly #lines: Lines
  readonly #ended: ReadonlyMap<Client, Promise<unknown>>

  private constructor(lines: Lines, chance: Chance, [echo, ...pids]: readonly number[], feedSeq: number) {
    const { ground, direct, session } = lines
    this.#lines = lines
    this.listeners = [new FeedListener(ground, "feed"), new SocketListener(ground, "feed-socket")]
    for (const listener of this.listeners) listener.after = feedSeq
    this.followers = [new EventFollower(ground, "events"), new SocketFollower(ground, "events-socket")]
    this.prompter = new Prompter(ground, this.listeners)
    this.typists = terminals.map((name) => new Typist(ground, name, chance))
    this.onlookers = terminals.map((name) => new Onlooker(direct, session.id, name))
    const readers = pids
      .map((pid) => ground.session.process(pid))
      .flatMap((process) => [
        new EventReader(ground, "events", process),
        new SocketReader(ground, "socket", process),
        new PollingReader(ground, "polls", process),
      ])
    const others = [...readers, new EventRunner(ground, "exec"), new Writer(ground, ground.session.process(echo ?? 0))]
    this.clients = [...this.listeners, ...this.followers, this.prompter, ...this.typists, ...others]
    this.#ended = new Map(this.clients.map((client) => [client, this.#run(client)]))
  }

  static async gather(lines: Lines, chance: Chance): Promise<Crowd> {
    const { session, direct } = lines
    const which = { session: session.id }
    const { feedSeq } = await direct.call("POST /v1/sessions/{session}/agent", {
      ...which,
      spec: { adapter: "scripted" },
    })
    for (const name of terminals)
      await direct.call("POST /v1/sessions/{session}/terminals", { ...which, name, cmd: parrot })
    const echo = await session.spawn(["cat"], { stdin: true })
    const programs = await Promise.all(
      Array.from({ length: counters }, () => session.spawn(counting, { replayBytes: countedBytes })),
    )
    return new Crowd(lines, chance, [echo.pid, ...programs.map(({ pid }) => pid)], feedSeq)
  }

  get returns(): number {
    return this.clients.reduce((sum, client) => sum + client.returns, 0)
  }

  /** It is enough, and the line is mended: each ends when everything has come. */
  async finish(): Promise<void> {
    const { session } = this.#lines
    await session.exec("touch /tmp/enough")
    const endless: readonly Client[] = [...this.listeners, ...this.followers]
    await this.#over(this.clients.filter((client) => !endless.includes(client)))
    for (const listener of this.listeners) listener.over.abort()
    await session.update({ name: lastName })
    await this.#over(endless)
  }

  #over(clients: readonly Client[]): Promise<unknown> {
    return Promise.all(clients.map(async (client) => this.#ended.get(client)))
  }

  async #run(client: Client): Promise<void> {
    try {
      await client.run()
    } catch (thrown) {
      this.failures.push(thrown)
    }
  }
}
