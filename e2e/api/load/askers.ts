import { setTimeout as pause } from "node:timers/promises"
import { Fault } from "@warren/base/fault.ts"
import { readFeed, type FeedItem } from "@warren/sdk/feed.ts"
import { readFeedSocket } from "@warren/sdk/feed-socket.ts"
import type { Item } from "@warren/sdk/routes.ts"
import { Client } from "./client.ts"

/** Between two things it asks for: the point is when, not how many. */
const restMs = 40
const events = "GET /v1/sessions/events"
type Change = FeedItem<Item<typeof events>>

/** Follows the sessions. What it was told is kept, to be held against what others were told. */
abstract class Follower extends Client {
  readonly told: number[] = []
  /** Every session it has heard of. */
  readonly heard = new Set<string>()
  /** How often it had to look anew: what came in between was not kept. */
  resyncs = 0
  #after = 0

  abstract changes(after: number): AsyncIterable<Change>

  async run(): Promise<void> {
    await this.insist(() => this.#follow().catch((thrown: unknown) => this.#resync(thrown)))
  }

  async #follow(): Promise<void> {
    for await (const { seq, item } of this.changes(this.#after)) {
      this.check(seq > this.#after, `${seq} came after ${this.#after}`)
      this.#after = seq
      this.told.push(seq)
      this.steps++
      if (item.session) this.heard.add(item.session.id)
      // The last thing that happens.
      if (item.session?.name === lastName) return
    }
    throw new Fault("unavailable", "it ended early")
  }

  /** As the SDK's guide says: list, then follow again. */
  async #resync(thrown: unknown): Promise<never> {
    if (!(thrown instanceof Fault) || thrown.code !== "resync") throw thrown
    const { items, eventSeq = 0 } = await this.ground.http.call("GET /v1/sessions", { limit: 200 })
    for (const { id } of items) this.heard.add(id)
    this.resyncs++
    this.#after = eventSeq
    throw new Fault("unavailable", "it is followed anew")
  }
}

/** What a session is called at the very end. */
export const lastName = "this-was-all"

export class EventFollower extends Follower {
  changes(after: number): AsyncIterable<Change> {
    return readFeed(this.ground.http, events, { after })
  }
}

export class SocketFollower extends Follower {
  changes(after: number): AsyncIterable<Change> {
    return readFeedSocket(this.ground.http, events, { after })
  }
}

const words = "seq 1 2000; sleep 0.05; seq 2001 4000"
const said = `${Array.from({ length: 4_000 }, (_, index) => index + 1).join("\n")}\n`

/** Runs programs one after the other: each gives all it says, or it is known that it did not. */
export class EventRunner extends Client {
  async run(): Promise<void> {
    while (!this.ground.enough.aborted) {
      const { stdout, exitCode } = await this.insist(() => this.ground.session.exec(words))
      this.check(stdout === said && exitCode === 0, `${stdout.length} characters, ${exitCode}`)
      await pause(restMs)
    }
  }
}

/** The same with bytes both ways, on a WebSocket. */
export class SocketRunner extends Client {
  async run(): Promise<void> {
    const bytes = new Uint8Array(300_000).map((_, index) => index % 251)
    while (!this.ground.enough.aborted) {
      const { stdoutBytes } = await this.insist(() => this.ground.session.exec(["cat"], { stdin: bytes }))
      this.check(Buffer.from(stdoutBytes).equals(Buffer.from(bytes)), `${stdoutBytes.length} bytes`)
      await pause(restMs)
    }
  }
}

/** Looks at something that is there: it is never told that it is not. */
export class Looker extends Client {
  async run(): Promise<void> {
    const { id } = this.ground.session
    while (!this.ground.enough.aborted) {
      const found = await this.insist(() => this.ground.http.call("GET /v1/sessions/{id}", { id }))
      this.check(found.id === id && found.state === "running", found.state)
      await pause(restMs)
    }
  }
}
