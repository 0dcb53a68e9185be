import type { Clock } from "@warren/base/clock.ts"
import { messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Driver } from "@warren/drivers/driver.ts"
import { Pool } from "../pool/pool.ts"
import { boot, type Found } from "./boot.ts"
import { refuseDamage } from "./damage.ts"
import type { Plan } from "./plan.ts"
import { Reaper } from "./reaper.ts"
import { Sandboxes, type ImageSource, type WorkspaceSource } from "./sandboxes.ts"
import { SessionStore } from "./session-store.ts"
import { Sessions } from "./sessions.ts"
import { SnapshotStore } from "./snapshot-store.ts"
import { Snapshots } from "./snapshots.ts"
import { usualPlan } from "./wishes.ts"
import type { WaysOut } from "./way-out.ts"

export interface EngineOptions {
  readonly database: Database
  /** The first is the one sessions get unless they ask for another. */
  readonly drivers: readonly [Driver, ...Driver[]]
  /** The image of sessions that ask for none. */
  readonly image: string
  readonly images: ImageSource
  readonly workspaces: WorkspaceSource
  readonly waysOut: WaysOut
  readonly clock: Clock
  readonly log: Log
  readonly sessionsMax: number
  /** What sandboxes that wait may cost; 0: none wait. */
  readonly poolBytes: number
  /** How many wait at least for sessions that ask for nothing special. */
  readonly poolLeast: number
}

/** Everything that makes sessions live. */
export interface Engine extends AsyncDisposable {
  readonly sessions: Sessions
  readonly snapshots: Snapshots
  readonly sandboxes: Sandboxes
  readonly pool: Pool
  readonly store: SessionStore
  /** What the last runner left. */
  readonly found: Found
}

/** Opens the sessions of one user and brings them into order. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { clock, log, database } = options
  refuseDamage(database)
  await using scope = new Scope()
  const [{ name: driver }] = options.drivers
  const drivers = new Map(options.drivers.map((one) => [one.name, one]))
  const store = new SessionStore(database)
  const sandboxes = new Sandboxes({ ...options, drivers, store })
  const snapshots = new Snapshots(new SnapshotStore(database), sandboxes, options.images, clock)
  const pool = scope.use(
    new Pool({
      sandboxes,
      clock,
      log,
      budgetBytes: options.poolBytes,
      usual: poolPlan(options),
      usualLeast: options.poolLeast,
    }),
  )
  // Made last, and told of everything from then on.
  const watch: { reaper?: Reaper } = {}
  const wake = (): void => watch.reaper?.wake()
  const sessions = new Sessions({
    ...options,
    store,
    sandboxes,
    snapshots,
    pool,
    usual: { driver, image: options.image },
    wake,
  })
  scope.defer(() => sessions.close())
  const found = await boot({
    drivers: options.drivers,
    store,
    sandboxes,
    snapshots,
    sessions,
    pool,
    log,
    signal: scope.signal,
  })
  watch.reaper = scope.use(new Reaper({ sessions, snapshots, clock, log }))
  pool.start()
  const owned = scope.move()
  return { sessions, snapshots, sandboxes, pool, store, found, [Symbol.asyncDispose]: () => owned.close() }
}

/** What waits for sessions that ask for nothing special; undefined while its image is not there. */
function poolPlan({ drivers: [driver], images, image, log }: EngineOptions): Plan | undefined {
  try {
    return usualPlan(driver, images.resolve(image))
  } catch (failure) {
    log("warn", "pool.usual", { image, message: messageOf(failure) })
    return undefined
  }
}
