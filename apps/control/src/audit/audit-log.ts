import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { SigningKey } from "../signing-key.ts"
import type { AuditRow, AuditRows, CheckpointRow } from "../store/audit-rows.ts"
import { genesis, hashOfRow, isSignedCheckpoint, signCheckpoint } from "./chain.ts"
import type { AuditHead } from "./head.ts"

export const auditLimits = {
  /** Entries that wait to be written; then nothing more is done that would have to be. */
  waitingMax: 10_000,
  perWrite: 500,
  /** What comes within this is written together, unless somebody waits for it: each write waits for the disk, and everybody with it. */
  gatherMs: 100,
  /** How often numbers taken by another control plane on the same database are counted again. */
  triesMax: 20,
  retryMs: 1_000,
  perRead: 1_000,
  headMs: 1_000,
} as const

export type AuditFacts = Omit<AuditRow, "seq" | "time" | "hash">

interface AuditParts {
  readonly rows: AuditRows
  readonly key: SigningKey
  readonly head: AuditHead
  readonly clock: Clock
  readonly log: Log
  /** Entries kept; when there are a tenth more, the oldest are forgotten. 0 keeps all. */
  readonly entriesMax: number
}

/** Who did what: only ever added to, each entry bound to the one before it. */
export class AuditLog implements AsyncDisposable {
  readonly #parts: AuditParts
  readonly #waiting: (AuditFacts & { readonly time: number })[] = []
  readonly #stop = new AbortController()
  readonly #waiters = new Set<() => void>()
  #hurry = (): void => undefined
  #writing: Promise<void> | undefined
  #last: { seq: number; hash: string } | undefined
  #headAt = Number.NEGATIVE_INFINITY

  constructor(parts: AuditParts) {
    this.#parts = parts
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Throws when so much waits to be written that something has to give: then it is the doing, not the noting. */
  checkRoom(): void {
    if (this.#waiting.length >= auditLimits.waitingMax) throw unwritable()
  }

  add(facts: AuditFacts): void {
    this.#waiting.push({ ...facts, time: this.#parts.clock.now() })
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
  }

  /** Resolves when everything added so far is in the database. Throws when a try to write it fails: it is tried again, but not waited for. */
  async written(): Promise<void> {
    while (this.#writing && !this.#stop.signal.aborted) {
      this.#hurry()
      await this.#writtenOrNot(this.#writing)
    }
  }

  /** In order: the first ones after a number, or the last ones before one. */
  read({ after, before }: { after: number; before?: number | undefined }, limit: number): Promise<AuditRow[]> {
    const { rows } = this.#parts
    return before === undefined ? rows.read(after, limit) : rows.readLast(before, after, limit)
  }

  checkpoint(): Promise<CheckpointRow | undefined> {
    return this.#parts.rows.checkpoint()
  }

  async *all(): AsyncGenerator<AuditRow> {
    for (let after = 0; ;) {
      const rows = await this.#parts.rows.read(after, auditLimits.perRead)
      yield* rows
      after = rows.at(-1)?.seq ?? after
      if (rows.length < auditLimits.perRead) return
    }
  }

  /** The first thing that is wrong with the log; undefined when it is whole. */
  async verify(): Promise<{ entries: number; problem: string | undefined }> {
    await this.written()
    const { rows, key, head } = this.#parts
    const checkpoint = await rows.checkpoint()
    if (checkpoint && !isSignedCheckpoint(key, checkpoint)) return { entries: 0, problem: "the checkpoint is not ours" }
    const end = head.read()
    let at = { seq: checkpoint?.seq ?? 0, hash: checkpoint?.hash ?? genesis }
    let entries = 0
    for await (const row of this.all()) {
      const problem = problemOf(at, row, end)
      if (problem !== undefined) return { entries, problem }
      at = row
      entries++
    }
    const isShort = end !== undefined && end.seq > at.seq
    return { entries, problem: isShort ? `entries after ${at.seq} are gone: there were ${end.seq}` : undefined }
  }

  /** Forgets entries up to this one; what takes their place is signed. */
  async truncate(seq: number): Promise<CheckpointRow> {
    await this.written()
    const [row] = await this.#parts.rows.read(seq - 1, 1)
    if (row?.seq !== seq) throw new Fault("not_found", `there is no entry ${seq}`)
    const checkpoint = signCheckpoint(this.#parts.key, { seq, hash: row.hash, time: this.#parts.clock.now() })
    await this.#parts.rows.truncate(checkpoint)
    failpoint("audit/truncated")
    return checkpoint
  }

  /** Writes what waits; what cannot be written then is lost, and said to be. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the audit log closes"))
    this.#hurry()
    await this.#writing
    if (this.#waiting.length > 0) await this.#writeSome().catch((thrown: unknown) => this.#complain(thrown))
    if (this.#last) this.#parts.head.write({ ...this.#last, time: this.#parts.clock.now() })
  }

  async #write(): Promise<void> {
    await this.#gather()
    while (this.#waiting.length > 0) {
      try {
        await this.#writeSome()
      } catch (thrown) {
        this.#complain(thrown)
        if (!(await this.#pause())) return
      }
    }
  }

  #gather(): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, auditLimits.gatherMs)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #writtenOrNot(writing: Promise<void>): Promise<void> {
    let refuse = (): void => undefined
    const refused = new Promise<never>((_, reject) => (refuse = () => reject(unwritable())))
    this.#waiters.add(refuse)
    await Promise.race([writing, refused]).finally(() => this.#waiters.delete(refuse))
  }

  #complain(thrown: unknown): void {
    for (const refuse of this.#waiters) refuse()
    this.#parts.log("error", "audit.failed", { waiting: this.#waiting.length, message: messageOf(thrown) })
  }

  async #pause(): Promise<boolean> {
    const { clock } = this.#parts
    return clock.sleep(auditLimits.retryMs, this.#stop.signal).then(...([() => true, () => false] as const))
  }

  async #writeSome(): Promise<void> {
    const facts = this.#waiting.slice(0, auditLimits.perWrite)
    for (let tries = 1; ; tries++) {
      this.#last ??= await this.#end()
      const rows = chained(this.#last, facts)
      try {
        await this.#parts.rows.add(rows)
        failpoint("audit/added")
        this.#last = rows.at(-1)
        break
      } catch (failure) {
        // Another control plane was faster: the chain goes on from its entry.
        this.#last = undefined
        if (Fault.from(failure).code !== "conflict" || tries >= auditLimits.triesMax) throw failure
      }
    }
    this.#waiting.splice(0, facts.length)
    await this.#settle()
  }

  async #end(): Promise<{ seq: number; hash: string }> {
    return (await this.#parts.rows.last()) ?? (await this.#parts.rows.checkpoint()) ?? { seq: 0, hash: genesis }
  }

  async #settle(): Promise<void> {
    const { clock, head, entriesMax } = this.#parts
    if (!this.#last || clock.monotonic() - this.#headAt < auditLimits.headMs) return
    this.#headAt = clock.monotonic()
    failpoint("audit/headed")
    head.write({ seq: this.#last.seq, hash: this.#last.hash, time: clock.now() })
    if (entriesMax > 0) await this.#forget(this.#last.seq)
  }

  async #forget(last: number): Promise<void> {
    const { rows, key, clock, entriesMax } = this.#parts
    const begin = (await rows.checkpoint())?.seq ?? 0
    if (last - begin <= entriesMax * 1.1) return
    const [row] = await rows.read(last - entriesMax - 1, 1)
    if (row) await rows.truncate(signCheckpoint(key, { seq: row.seq, hash: row.hash, time: clock.now() }))
  }
}

function unwritable(): Fault {
  return new Fault("unavailable", "the audit log cannot be written", { hint: "see the control plane's log" })
}

function chained(last: { seq: number; hash: string }, facts: readonly (AuditFacts & { time: number })[]): AuditRow[] {
  let { seq, hash } = last
  return facts.map((fact) => {
    seq++
    hash = hashOfRow(hash, { ...fact, seq })
    return { ...fact, seq, hash }
  })
}

function problemOf(
  before: { seq: number; hash: string },
  row: AuditRow,
  head: CheckpointRow | undefined,
): string | undefined {
  if (row.seq !== before.seq + 1) return `entries between ${before.seq} and ${row.seq} are gone`
  if (row.hash !== hashOfRow(before.hash, row)) return `entry ${row.seq} is not what was written`
  if (head?.seq === row.seq && head.hash !== row.hash) return `the log was written anew up to entry ${row.seq}`
  return undefined
}
