import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { z } from "zod"
import { changes, isReady, type Watch } from "./filesystem.ts"
import { Inside } from "./inside.ts"

const limits = {
  watchersMax: 1_000,
  eventsMax: 10_000,
  /** Nobody has asked for its events for so long. */
  idleMs: 10 * 60_000,
} as const

interface Watcher {
  readonly session: string
  readonly stop: AbortController
  events: object[]
  askedAt: number
  failure: Fault | undefined
}

/** For clients that ask now and then instead of listening: what has happened since they last asked. */
export class Watchers {
  readonly #clock: Clock
  readonly #all = new Map<string, Watcher>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async create(inside: Inside, asked: z.output<typeof Watch>): Promise<object> {
    this.#forget()
    if (this.#all.size >= limits.watchersMax) throw new Fault("limit", "there are too many watchers")
    const stop = new AbortController()
    const watcher: Watcher = {
      ...{ session: inside.session, stop, events: [], askedAt: this.#clock.monotonic(), failure: undefined },
    }
    // It outlives the request that asks for it.
    const events = changes(new Inside(inside.plane.beyond(stop.signal), inside.sandbox, inside.user), asked)
    const first = await events.next()
    if (first.done || !isReady(first.value)) throw new Fault("internal", "a watch began without saying so")
    const id = newId("wtc")
    this.#all.set(id, watcher)
    void this.#follow(watcher, events)
    return { watcherId: id }
  }

  take(inside: Inside, { watcherId }: { watcherId: string }): object {
    const watcher = this.#find(inside, watcherId)
    watcher.askedAt = this.#clock.monotonic()
    if (watcher.failure !== undefined) throw watcher.failure
    const { events } = watcher
    watcher.events = []
    return { events }
  }

  remove(inside: Inside, { watcherId }: { watcherId: string }): object {
    this.#find(inside, watcherId).stop.abort(new Fault("cancelled", "nobody watches any more"))
    this.#all.delete(watcherId)
    return {}
  }

  #find({ session }: Inside, id: string): Watcher {
    const found = this.#all.get(id)
    if (found?.session === session) return found
    throw new Fault("not_found", `watcher with id ${id} not found`)
  }

  async #follow(watcher: Watcher, events: AsyncGenerator<object, void, void>): Promise<void> {
    try {
      for await (const event of events) {
        if (watcher.events.length >= limits.eventsMax) throw new Fault("limit", "too many events were not asked for")
        watcher.events.push(event)
      }
    } catch (thrown) {
      watcher.failure = Fault.from(thrown)
    }
  }

  #forget(): void {
    for (const [id, watcher] of this.#all) {
      if (this.#clock.monotonic() - watcher.askedAt < limits.idleMs) continue
      watcher.stop.abort(new Fault("cancelled", "nobody asks for it any more"))
      this.#all.delete(id)
    }
  }
}
