import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Entry } from "./entry.ts"
import { decide, quietMs, type Action } from "./health.ts"
import { lookInside } from "./inside.ts"
import type { Sessions } from "./sessions.ts"
import type { SessionId } from "./session-record.ts"
import type { Snapshots } from "./snapshots.ts"

export interface ReaperParts {
  readonly sessions: Sessions
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** Many changes in a moment are one look. */
const settleMs = 20
/** Uses are written down this often, and a mistake in the arithmetic of waiting heals. */
const longestMs = 5_000
/** Made once: an abort without a reason makes one each time, and this happens at every change. */
const woken = new Fault("cancelled", "something has changed")
/** After an action that failed. */
const againMs = 5_000

/** Does what is due: sees what there is, decides, acts, and sleeps until something changes or becomes due. */
export class Reaper implements AsyncDisposable {
  readonly #parts: ReaperParts
  readonly #stop = new AbortController()
  /** Being acted on, or left alone after a failure. */
  readonly #busy = new Set<SessionId>()
  readonly #acts = new Set<Promise<void>>()
  readonly #loop: Promise<void>
  #wake = new AbortController()

  constructor(parts: ReaperParts) {
    this.#parts = parts
    this.#loop = this.#run()
  }

  /** Something has changed. */
  wake(): void {
    this.#wake.abort(woken)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(woken)
    this.wake()
    await this.#loop
    await Promise.all(this.#acts)
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController()
      const waitMs = this.#look()
      await this.#flush()
      // The end wakes, too. A signal made of both would be remembered by the one that lives on, for ever, at every round.
      await this.#sleep(waitMs, this.#wake.signal)
      await this.#sleep(settleMs, this.#stop.signal)
    }
  }

  /** A database that is locked or full is waited for, whatever happens meanwhile: each try holds everybody up. */
  async #flush(): Promise<void> {
    try {
      this.#parts.sessions.flush()
      this.#parts.snapshots.flush()
    } catch (failure) {
      this.#parts.log("warn", "sessions.flush", { message: messageOf(failure) })
      await this.#sleep(againMs, this.#stop.signal)
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#parts.clock.sleep(ms, signal).catch(() => undefined)
  }

  /** Starts what is due; says how long nothing else will be. */
  #look(): number {
    let waitMs = longestMs
    for (const entry of this.#parts.sessions.entries) {
      if (this.#busy.has(entry.id)) continue
      const facts = entry.facts()
      const action = decide(facts)
      if (action) this.#start(entry, action)
      else waitMs = Math.min(waitMs, quietMs(facts))
    }
    return Math.max(0, waitMs)
  }

  #start(entry: Entry, action: Action): void {
    this.#busy.add(entry.id)
    const work = this.#act(entry, action)
      .catch(async (failure: unknown) => {
        if (Fault.from(failure).code === "not_found") return
        this.#parts.log("warn", "session.reap", { session: entry.id, action, message: messageOf(failure) })
        await this.#parts.clock.sleep(againMs, this.#stop.signal).catch(() => undefined)
      })
      .finally(() => {
        this.#busy.delete(entry.id)
        this.#acts.delete(work)
        this.wake()
      })
    this.#acts.add(work)
  }

  async #act(entry: Entry, action: Action): Promise<void> {
    const { sessions, snapshots, clock } = this.#parts
    const { id } = entry
    switch (action) {
      case "finish":
        return sessions.finish(id)
      case "fail":
        return sessions.fail(entry, ...whyDied(entry))
      case "expire":
        return void (await sessions.stop(id, { reason: "expired", dropsFiles: true, graceMs: 0 }))
      case "endLife":
        return void (await sessions.stop(id, { reason: "life", dropsFiles: true, graceMs: 0 }))
      case "restLife":
        return void (await sessions.hibernate(id, "life"))
      case "look":
        if (!entry.live) return
        entry.inside = await lookInside(entry.live.sandbox, clock.now(), this.#stop.signal)
        if (entry.inside === "busy") entry.foundBusy()
        return
      case "pause":
      case "pauseLife":
        return void (await sessions.pause(id))
      case "hibernate":
        return void (await sessions.hibernate(id, "idle"))
      case "stop":
        return void (await sessions.stop(id, { reason: "idle" }))
      case "snapshot":
        await sessions.snapshot(id, { isAutomatic: true })
        return snapshots.thin(id, entry.record.snapshots?.keep ?? 1)
    }
  }
}

function whyDied({ live }: Entry): ["oom" | "died", string] {
  let kills = 0
  try {
    kills = live?.sandbox.oomKills() ?? 0
  } catch {
    // Its group is gone already, and with it the count.
  }
  return kills > 0
    ? ["oom", "the machine killed its first process for want of memory"]
    : ["died", "its sandbox ended by itself"]
}
