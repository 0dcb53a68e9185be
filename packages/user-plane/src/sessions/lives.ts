import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { canPause, type Pausable } from "@warren/drivers/driver.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { Entry } from "./entry.ts"
import { canMove, moved, unfit } from "./moves.ts"
import type { Plan } from "./plan.ts"
import type { Live, Sandboxes } from "./sandboxes.ts"
import type { SessionBook } from "./session-book.ts"
import { shown, type Reason, type SessionData } from "./session-record.ts"
import type { SnapshotRecord } from "./snapshot-store.ts"
import { equip } from "./use.ts"

export interface Stopping {
  readonly graceMs?: number
  readonly reason?: Reason
  readonly dropsFiles?: boolean
}

/** What happens to a session in its life. Each is for a session whose turn it is. */
export class Lives {
  readonly #book: SessionBook
  readonly #sandboxes: Sandboxes

  constructor(book: SessionBook, sandboxes: Sandboxes) {
    this.#book = book
    this.#sandboxes = sandboxes
  }

  async awaken(entry: Entry, signal: AbortSignal): Promise<void> {
    const { state } = entry.record
    if (state === "paused") await this.resume(entry)
    else if (state === "hibernated") await this.restore(entry, signal)
    else if (state !== "running") throw unfit(entry.record)
    else if (!entry.live)
      throw new Fault("unavailable", "its sandbox is not watched", { subject: `session:${entry.id}` })
  }

  async pause(entry: Entry): Promise<SessionData> {
    moved(entry.record, "pause")
    const sandbox = this.#pausable(entry)
    await sandbox.pause()
    try {
      failpoint("session/paused")
      return this.#book.move(entry, "pause", {})
    } catch (failure) {
      // It is as it is written down: one that counts as running must not stand still.
      await sandbox.resume()
      throw failure
    }
  }

  async resume(entry: Entry): Promise<SessionData> {
    moved(entry.record, "resume")
    const sandbox = this.#pausable(entry)
    await sandbox.resume()
    entry.used()
    try {
      failpoint("session/resumed")
      return this.#book.move(entry, "resume", { reason: undefined, detail: undefined })
    } catch (failure) {
      await sandbox.pause()
      throw failure
    }
  }

  async hibernate(entry: Entry, reason: Reason): Promise<SessionData> {
    this.#book.move(entry, "hibernate", {})
    const end = async (live: Live | undefined): Promise<void> => {
      failpoint("session/hibernating")
      if (live) await this.#sandboxes.stop(live)
      failpoint("session/asleep")
    }
    await this.#arrive(entry, end, () => this.#book.finish(entry, "sleep", { reason }))
    return shown(entry.record)
  }

  async restore(entry: Entry, signal: AbortSignal): Promise<SessionData> {
    const { sandbox, plan } = entry.record
    if (sandbox === undefined)
      throw new Fault("conflict", "its files were taken away when it ended", { subject: `session:${entry.id}` })
    this.#book.move(entry, "restore", {})
    let live: Live | undefined
    try {
      failpoint("session/restoring")
      live = await this.#started(sandbox, plan, signal)
      await equip(live, entry.record)
      failpoint("session/restored")
      this.#book.move(entry, "ready", { reason: undefined, detail: undefined })
      this.#book.attach(entry, live)
      entry.used()
      return shown(entry.record)
    } catch (failure) {
      try {
        // One that does not end is ended when it is started again.
        if (live) await this.#sandboxes.stop(live, 0)
      } finally {
        const isLost = Fault.from(failure).code === "not_found"
        const detail = messageOf(failure)
        if (isLost) this.#book.finish(entry, "fail", { reason: "lost", detail, sandbox: undefined })
        else this.#book.finish(entry, "lose", { reason: "start", detail })
      }
      throw failure
    }
  }

  /** Its files as they were; what it has written since is gone. */
  async rollback(entry: Entry, snapshot: SnapshotRecord, signal: AbortSignal): Promise<SessionData> {
    const { record } = entry
    if (snapshot.plan.driver !== record.plan.driver)
      throw new Fault("conflict", "the snapshot is of another driver's sandbox")
    this.#book.move(entry, "rollback", {})
    const live = entry.end()
    let next: Live | undefined
    try {
      failpoint("rollback/begun")
      if (live) await this.#sandboxes.stop(live)
      const plan = { ...record.plan, image: snapshot.plan.image, from: snapshot.id }
      next = await this.#sandboxes.make(plan, record.id, signal)
      await equip(next, record)
      const files = { sandbox: next.id, base: snapshot.id, image: snapshot.image, plan: { ...plan, from: undefined } }
      failpoint("rollback/made")
      this.#book.move(entry, "ready", files)
      this.#book.attach(entry, next)
    } catch (failure) {
      // Nothing was lost: its files are those from before, and the next use starts it.
      try {
        if (next) await this.#sandboxes.destroy(next.id, next.plan, next.wayOut)
      } finally {
        this.#book.finish(entry, "lose", { reason: "start", detail: messageOf(failure) })
      }
      throw failure
    }
    failpoint("rollback/moved")
    if (record.sandbox !== undefined) await this.#sandboxes.destroy(record.sandbox, record.plan)
    return shown(entry.record)
  }

  async stop(entry: Entry, { reason = "requested", graceMs, dropsFiles = false }: Stopping): Promise<SessionData> {
    if (entry.record.state === "stopped") return shown(entry.record)
    const { sandbox, plan } = entry.record
    // Given up before they go: a session must never seem to have files that are half gone.
    this.#book.move(entry, "stop", { reason, sandbox: dropsFiles ? undefined : sandbox })
    const end = async (live: Live | undefined): Promise<void> => {
      failpoint("session/stopping")
      if (live) await this.#sandboxes.stop(live, graceMs)
      if (dropsFiles && sandbox !== undefined) await this.#sandboxes.destroy(sandbox, plan)
      failpoint("session/stopped")
    }
    await this.#arrive(entry, end, () => this.#book.finish(entry, "end", {}))
    return shown(entry.record)
  }

  /** Everything of it goes. */
  async delete(entry: Entry): Promise<void> {
    if (entry.record.isLeaving && entry.unfinished) return entry.unfinished()
    // What it failed on is no reason to keep it. Files that were being given up are known to nobody else, so it is tried first.
    await entry.unfinished?.().catch(() => undefined)
    this.#book.move(entry, "leave", { isLeaving: true })
    const remove = async (live: Live | undefined): Promise<void> => {
      failpoint("session/leaving")
      const { sandbox, plan } = entry.record
      if (sandbox !== undefined) await this.#sandboxes.destroy(sandbox, plan, live?.wayOut)
      failpoint("session/removed")
      this.#book.delete(entry)
    }
    await this.#arrive(entry, remove)
  }

  /** Its sandbox has ended and nobody asked for it. */
  async fail(entry: Entry, reason: Reason, detail: string): Promise<void> {
    if (!canMove(entry.record.state, "fail")) return
    this.#book.move(entry, "fail", { reason, detail })
    const live = entry.end()
    // What is left of it outside goes; its files stay.
    if (live) await this.#sandboxes.stop(live, 0)
  }

  /** It is written down where it goes to, so it gets there: whoever asked is told what failed, and the rest is done later. */
  async #arrive(entry: Entry, end: (live: Live | undefined) => Promise<void>, done?: () => unknown): Promise<void> {
    const live = entry.end()
    try {
      await end(live)
    } catch (failure) {
      entry.live = live
      this.#book.postpone(entry, () => this.#arrive(entry, end, done))
      throw failure
    }
    entry.unfinished = undefined
    done?.()
  }

  /** One that could not be stopped runs still; it is not the one that is asked for. */
  async #started(id: SandboxId, plan: Plan, signal: AbortSignal): Promise<Live> {
    try {
      return await this.#sandboxes.start(id, plan, signal)
    } catch (failure) {
      if (Fault.from(failure).code !== "conflict") throw failure
      await this.#sandboxes.driver(plan.driver).stop(id, 0)
      return this.#sandboxes.start(id, plan, signal)
    }
  }

  #pausable({ live, record }: Entry): Pausable {
    if (!live) throw unfit(record)
    const driver = this.#sandboxes.driver(live.plan.driver)
    if (canPause(driver, live.sandbox)) return live.sandbox
    throw new Fault("unsupported", `the driver ${driver.name} cannot pause: ${driver.abilities.reasons["pause"]}`)
  }
}
