import { join } from "node:path"
import { newId } from "@warren/base/id.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { defaultLimits } from "@warren/drivers/sandbox-spec.ts"
import { rpcSocketOf } from "@warren/protocol/places.ts"
import type { SessionRecord } from "@warren/user-plane/sessions/session-record.ts"
import { SessionStore } from "@warren/user-plane/sessions/session-store.ts"
import { migrations } from "@warren/user-plane/user-plane.ts"
import { mkdirSync, realpathSync } from "node:fs"
import { dirname } from "node:path"
import { defineMetric, elapsedMs, type Metric } from "./metric.ts"
import { Runner } from "./runner.ts"

const sessions = 10_000

/** Something asked of a runner that has ten thousand sessions, all of them ended. */
export function amongMany(name: string, ask: (runner: Runner, number: number) => Promise<unknown>): Metric {
  return defineMetric({
    name,
    unit: "ms",
    goal: { p50Max: 5 },
    samples: { full: 500, quick: 100 },
    async prepare(context) {
      const home = join(realpathSync(context.folder), "h")
      const folder = join(dirname(dirname(rpcSocketOf(home))), "internal")
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      fill(join(folder, "warren.db"))
      return Runner.start(context, { WARREN_POOL_MB: "0" })
    },
    run: (runner) => elapsedMs(() => ask(runner, Math.floor(Math.random() * sessions))),
  })
}

function fill(path: string): void {
  using database = new Database(path, { migrations })
  const store = new SessionStore(database)
  store.atomically(() => {
    for (let number = 0; number < sessions; number++) store.add(recordOf(number))
  })
}

function recordOf(number: number): SessionRecord {
  const now = Date.now()
  return {
    id: newId("ses"),
    name: `session-${number}`,
    labels: { parity: String(number % 2) },
    state: "stopped",
    reason: "requested",
    plan: { driver: "oci", image: "host", profile: "dev", limits: defaultLimits, network: "proxy" },
    image: "host",
    reach: { access: "list", allow: [] },
    env: {},
    secrets: [],
    keys: [],
    createdAt: now,
    usedAt: now,
    acquireSource: "cold",
    acquireMs: 12,
  }
}
