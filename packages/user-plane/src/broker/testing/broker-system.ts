import { ManualClock } from "@warren/base/clock.ts"
import { createLog } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { Database } from "@warren/base/sqlite/database.ts"
import { TempFolder } from "@warren/base/testing/temp-folder.ts"
import { EgressSystem } from "../../egress/testing/egress-system.ts"
import { Broker, type BrokerOptions, type Upstreams } from "../broker.ts"
import { leaseMigrations, Leases } from "../leases.ts"

export const realKey = "sk-real-KEY-7f3a9c-do-not-leak"

/** A broker with a database of its own, behind the egress sockets of two sandboxes. */
export class BrokerSystem implements AsyncDisposable {
  readonly clock = new ManualClock()
  readonly lines: string[] = []
  readonly folder: TempFolder
  readonly database: Database
  readonly leases: Leases
  readonly broker: Broker
  readonly #scope: Scope

  private constructor(
    scope: Scope,
    folder: TempFolder,
    options: { upstreams: Upstreams; keys?: BrokerOptions["keys"] },
  ) {
    this.#scope = scope
    this.folder = folder
    this.database = scope.use(new Database(folder.at("runner.db"), { migrations: leaseMigrations }))
    this.leases = new Leases(this.database, this.clock)
    this.broker = scope.use(
      new Broker({
        leases: this.leases,
        keys: options.keys ?? (() => Promise.resolve({ value: realKey })),
        upstreams: options.upstreams,
        log: createLog((line) => this.lines.push(line)),
        clock: this.clock,
      }),
    )
  }

  static async start(options: { upstreams: Upstreams; keys?: BrokerOptions["keys"] }): Promise<BrokerSystem> {
    const scope = new Scope()
    return new BrokerSystem(scope, scope.use(await TempFolder.make()), options)
  }

  /** The way out of a session's sandbox, as a port. */
  async sandbox(session: string): Promise<number> {
    const local = this.broker.handler(session)
    const system = this.#scope.use(await EgressSystem.start({ policy: { mode: "none" }, local }))
    return await system.forwarder()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.close()
  }
}
