import type { ChildProcess } from "node:child_process"
import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { launcher, RunnerReport } from "@warren/protocol/launcher/launcher.ts"
import type { Machine } from "@warren/protocol/launcher/machine.ts"
import { readRecord, readRecords } from "@warren/protocol/launcher/record.ts"
import { KeptProcess } from "./kept-process.ts"
import { knownUser } from "./known-user.ts"

interface LauncherOptions {
  readonly machine: Machine
  spawn(user: string): ChildProcess
  ready(user: string, signal: AbortSignal): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** One runner for each user that root has made. */
export class Launcher implements AsyncDisposable {
  readonly #options: LauncherOptions
  readonly #runners = new Map<string, KeptProcess>()

  constructor(options: LauncherOptions) {
    this.#options = options
  }

  /** Starts the runner of everybody who is to have one. One that does not start is no reason not to start the others. */
  startAll(signal: AbortSignal): Promise<unknown> {
    const { machine, log } = this.#options
    const active = readRecords(machine).filter(({ state }) => state === "active")
    return Promise.all(
      active.map(({ name }) =>
        this.#start(name, signal).catch((thrown: unknown) => {
          log("error", "runner.failed", { user: name, message: messageOf(thrown) })
        }),
      ),
    )
  }

  handlers(): Handlers<typeof launcher> {
    return {
      "runner.start": async ({ user }, { signal }) => {
        await this.#start(user, signal)
        return this.#report(user)
      },
      "runner.stop": async ({ user }) => {
        this.#refuseUnknown(user)
        await this.#runners.get(user)?.stop()
        const report = this.#report(user)
        // Who is gone tomorrow is not remembered for ever.
        this.#runners.delete(user)
        return report
      },
      "runner.status": async ({ user }) => {
        this.#refuseUnknown(user)
        return this.#report(user)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.stop()))
  }

  async #start(user: string, signal: AbortSignal): Promise<void> {
    knownUser(this.#options.machine, user)
    await this.#kept(user).start(signal)
  }

  #kept(user: string): KeptProcess {
    const { clock, log, spawn, ready } = this.#options
    const kept =
      this.#runners.get(user) ??
      new KeptProcess({
        name: `the runner of ${user}`,
        spawn: () => spawn(user),
        ready: (signal) => ready(user, signal),
        ...{ clock, log },
      })
    this.#runners.set(user, kept)
    return kept
  }

  #refuseUnknown(user: string): void {
    if (!readRecord(this.#options.machine, user)) throw new Fault("not_found", `there is no user "${user}"`)
  }

  #report(user: string): RunnerReport {
    const report = this.#runners.get(user)?.report() ?? { state: "stopped" as const, deaths: 0 }
    return { user, ...report }
  }
}
