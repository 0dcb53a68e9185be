import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Driver, Sandbox } from "@warren/drivers/driver.ts"
import { canPause, canSnapshot } from "@warren/drivers/driver.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { Pool } from "../pool/pool.ts"
import { poolOwner } from "../pool/pool.ts"
import { recover } from "./recovery.ts"
import type { Live, Sandboxes } from "./sandboxes.ts"
import type { Sessions } from "./sessions.ts"
import type { SessionRecord } from "./session-record.ts"
import type { SessionStore } from "./session-store.ts"
import type { Snapshots } from "./snapshots.ts"

export interface BootParts {
  readonly drivers: Iterable<Driver>
  readonly store: SessionStore
  readonly sandboxes: Sandboxes
  readonly snapshots: Snapshots
  readonly sessions: Sessions
  readonly pool: Pool
  readonly log: Log
  readonly signal: AbortSignal
}

/** What was found when a runner started. */
export interface Found {
  readonly adopted: number
  readonly asleep: number
  readonly lost: number
  readonly forgotten: number
  /** Not given to anybody yet. */
  readonly waiting: number
  readonly removed: number
}

const recordsAtOnce = 1_000

/** Brings what the last runner left into order: every sandbox belongs to a session or goes, every session is in a state it can be in. */
export async function boot(parts: BootParts): Promise<Found> {
  const running = await runningOf(parts.drivers, parts.signal)
  await refuseIfLost(running, parts)
  failpoint("boot/adopted")
  const found = { adopted: 0, asleep: 0, lost: 0, forgotten: 0, waiting: 0, removed: 0 }
  const kept = new Set<SandboxId>()
  for (const record of all(parts.store)) {
    const settled = await settle(record, running, parts, found)
    if (settled?.sandbox !== undefined) kept.add(settled.sandbox)
    failpoint("boot/settled")
  }
  await parts.snapshots.sweep(parts.drivers)
  failpoint("boot/swept")
  const ledger = parts.store.sandboxes()
  for (const { id, owner, plan } of ledger) {
    if (kept.has(id)) continue
    const waiting = owner === poolOwner ? running.get(id) : undefined
    if (waiting) parts.pool.add(await parts.sandboxes.adopt(waiting, plan))
    else await parts.sandboxes.destroy(id, plan)
    found[waiting ? "waiting" : "removed"]++
  }
  const known = new Set([...kept, ...ledger.map(({ id }) => id)])
  for (const sandbox of running.values()) {
    if (known.has(sandbox.id)) continue
    for (const driver of parts.drivers) await driver.destroy(sandbox.id)
    found.removed++
  }
  failpoint("boot/removed")
  parts.log("info", "sessions.found", { ...found })
  return found
}

/**
 * Everything is written down before it is made. Sandboxes or snapshots beside a database that knows of nothing mean that it is not the
 * one they were written down in, and whoever is not known would be taken away.
 */
async function refuseIfLost(running: ReadonlyMap<SandboxId, Sandbox>, parts: BootParts): Promise<void> {
  const { store, drivers } = parts
  if (store.count() > 0 || store.sandboxes().length > 0 || parts.snapshots.ids().length > 0) return
  const snapshots: string[] = []
  for (const driver of drivers) if (canSnapshot(driver)) snapshots.push(...(await driver.listSnapshots()))
  if (running.size === 0 && snapshots.length === 0) return
  const what = `${running.size} sandboxes run here and ${snapshots.length} snapshots are kept`
  throw new Fault("unavailable", `the database is empty, but ${what}: nothing was touched`, {
    hint: "restore internal/warren.db from a backup; to begin anew, move the folder of this user away",
  })
}

async function runningOf(drivers: Iterable<Driver>, signal: AbortSignal): Promise<Map<SandboxId, Sandbox>> {
  const running = new Map<SandboxId, Sandbox>()
  for (const driver of drivers) for await (const sandbox of driver.adopt(signal)) running.set(sandbox.id, sandbox)
  return running
}

/** What becomes of one session; undefined when nothing does. */
async function settle(
  record: SessionRecord,
  running: ReadonlyMap<SandboxId, Sandbox>,
  parts: BootParts,
  found: { -readonly [K in keyof Found]: number },
): Promise<SessionRecord | undefined> {
  const { sandboxes, store, sessions } = parts
  const sandbox = record.sandbox === undefined ? undefined : running.get(record.sandbox)
  const put = async (changes: Partial<SessionRecord>, live?: Live): Promise<SessionRecord> => {
    const next = { ...record, ...changes }
    if (next.state !== record.state) store.atomically(() => store.put(next))
    if (next.state !== "stopped" && next.state !== "failed") await sessions.restoreEntry(next, live)
    return next
  }
  const driver = sandboxes.driver(record.plan.driver)
  const end = async (): Promise<void> => {
    if (record.sandbox !== undefined) await driver.stop(record.sandbox, 0)
  }
  switch (record.isLeaving ? "forget" : recover(record.state, sandbox !== undefined)) {
    case "forget":
      store.delete(record.id)
      found.forgotten++
      return undefined
    case "keep":
      found[sandbox ? "adopted" : "asleep"]++
      return put({}, sandbox && (await sandboxes.adopt(sandbox, record.plan)))
    case "run":
      found.adopted++
      return put({ state: "running" }, sandbox && (await sandboxes.adopt(sandbox, record.plan)))
    case "pauseAgain":
      found.adopted++
      if (sandbox && canPause(driver, sandbox)) await sandbox.pause()
      return put({}, sandbox && (await sandboxes.adopt(sandbox, record.plan)))
    case "lose":
      await end()
      found.lost++
      return put({ state: "hibernated", reason: "lost", detail: "its sandbox was gone when the runner came back" })
    case "sleep":
      await end()
      found.asleep++
      return put({ state: "hibernated" })
    case "stopAgain":
      await end()
      return put({ state: "stopped" })
    case "endSandbox":
      await end()
      found.asleep++
      return put({})
  }
}

function* all(store: SessionStore): Generator<SessionRecord> {
  let before: number | undefined
  for (;;) {
    const rows = store.list({ limit: recordsAtOnce, ...(before === undefined ? {} : { before }) })
    for (const { record } of rows) yield record
    before = rows.at(-1)?.number
    if (before === undefined) return
  }
}
