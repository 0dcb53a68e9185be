import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { systemClock, type Clock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { openOciDriver } from "@warren/drivers/oci/driver.ts"
import { hostImage } from "@warren/drivers/oci/host-image.ts"
import { Broker } from "../../broker/broker.ts"
import { leaseMigrations, Leases } from "../../broker/leases.ts"
import { waysOut } from "../../egress/ways-out.ts"
import { openEngine, type Engine, type EngineOptions } from "../engine.ts"
import { sessionMigrations } from "../session-store.ts"
import { snapshotMigrations } from "../snapshot-store.ts"

const dist = resolve(import.meta.dirname, "../../../../../dist")

/** A user's folder on a real driver, which engines are opened on and closed, one after the other. */
export class Home implements AsyncDisposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "wu-")))
  readonly logged: string[] = []
  #scope: Scope | undefined
  #image: ReturnType<typeof hostImage> | undefined

  async open(changes: Partial<EngineOptions> & { clock?: Clock } = {}): Promise<Engine> {
    await this.close()
    const scope = new Scope()
    this.#scope = scope
    const { clock = systemClock } = changes
    const log = createLog((line) => void this.logged.push(line))
    const programs = {
      init: join(dist, "warren-init"),
      launch: join(dist, "warren-launch"),
      libraries: join(dist, "crun-lib"),
    }
    const driver = scope.use(
      await openOciDriver({ root: join(this.root, "oci"), programs, log, volume: { firstBytes: 2 ** 30 } }),
    )
    const database = scope.use(
      new Database(join(this.root, "warren.db"), {
        migrations: [...sessionMigrations, ...snapshotMigrations, ...leaseMigrations],
      }),
    )
    const leases = new Leases(database, clock)
    const broker = scope.use(new Broker({ leases, keys: () => Promise.resolve({ value: "none" }), log, clock }))
    const llms = { "llm:anthropic": "api.anthropic.com", "llm:openai": "api.openai.com" }
    const images = {
      resolve: (name: string) => name,
      use: () => (this.#image ??= hostImage(join(this.root, "host"))),
      release: () => undefined,
    }
    const workspaces = {
      hold: (name: string) => {
        const folder = join(this.root, "workspaces", name)
        mkdirSync(folder, { recursive: true })
        return Promise.resolve(folder)
      },
      release: () => undefined,
    }
    return scope.use(
      await openEngine({
        ...{ database, drivers: [driver], image: "host", images, workspaces, clock, log },
        waysOut: waysOut({ root: join(this.root, "egress"), broker, leases, llms, log, clock }),
        ...{ sessionsMax: 1_000, poolBytes: 0, poolLeast: 0 },
        ...changes,
      }),
    )
  }

  /** The runner goes; the sandboxes stay. */
  async close(): Promise<void> {
    await this.#scope?.close()
    this.#scope = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const engine = await this.open()
    for (const { id } of engine.sessions.list({ limit: 200 }).items) await engine.sessions.delete(id)
    for (const { id, plan } of engine.store.sandboxes()) await engine.sandboxes.destroy(id, plan)
    await this.close()
    rmSync(this.root, { recursive: true, force: true })
  }
}
