import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { silentLog } from "@warren/base/log.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { SandboxId } from "@warren/drivers/sandbox-spec.ts"
import type { openEngine } from "../engine.ts"
import { SimDriver } from "./sim-driver.ts"
import type { Life, World } from "./world.ts"

interface Around {
  readonly clock: Clock
  readonly database: Database
  /** Asked before each transaction. */
  refusesWrite(): boolean
}

/** What a runner finds around it: a machine that is a table, and a database that outlives it. */
export function surroundingsOf(life: Life, world: World, around: Around): Parameters<typeof openEngine>[0] {
  return {
    ...{ database: mortal(life, around), drivers: [new SimDriver(life)], image: "image" },
    ...{ images: imagesOf(life, world), workspaces, waysOut: waysOutOf(life, world) },
    ...{ clock: around.clock, log: silentLog, sessionsMax: 100, poolBytes: 2 * 1024 * 1024, poolLeast: 1 },
  }
}

const workspaces = { hold: async () => "/workspace", release: () => undefined }

function imagesOf(life: Life, { holders }: World) {
  return {
    resolve: (name: string) => name,
    use: async (_: string, holder: string) => {
      life.check()
      holders.add(holder)
      return { layers: ["/image"] }
    },
    release: (holder: string) => {
      life.check()
      holders.delete(holder)
    },
  }
}

function waysOutOf(life: Life, { folders }: World) {
  const wayOut = {
    allow: () => life.moment(),
    lend: () => undefined,
    environment: () => ({}),
    denials: () => [],
    [Symbol.asyncDispose]: async () => undefined,
  }
  return {
    folder: (id: SandboxId) => `/out/${id}`,
    open: async (id: SandboxId) => {
      await life.moment()
      folders.add(id)
      return wayOut
    },
    remove: async (id: SandboxId) => {
      await life.moment()
      folders.delete(id)
    },
  }
}

/** What a runner has committed stays; what it does after its death has no effect. */
function mortal(life: Life, { database, refusesWrite }: Around): Database {
  return new Proxy(database, {
    get: (real, key: keyof Database) => {
      life.check()
      const value: unknown = real[key]
      if (typeof value !== "function") return value
      return (...args: unknown[]) => {
        life.check()
        if (key === "transaction" && refusesWrite()) throw new Fault("limit", "the disk is full")
        return (value as (...given: unknown[]) => unknown).apply(real, args)
      }
    },
  })
}
