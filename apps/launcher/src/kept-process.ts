import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import type { Log } from "@warren/base/log.ts"
import { backoffMs } from "@warren/base/retry.ts"
import type { RunnerReport } from "@warren/protocol/launcher/launcher.ts"

type State = RunnerReport["state"]

export const keepLimits = {
  /** Deaths in a row after which it is left alone. */
  deathsMax: 8,
  /** Who has lived so long has started well: what went wrong before does not count any more. */
  settledMs: 60_000,
  baseMs: 200,
  capMs: 10_000,
  /** How long it may take to be ready, and to end when told to. */
  readyMs: 30_000,
  stopMs: 10_000,
} as const

interface KeptOptions {
  readonly name: string
  /** Makes what it stands on, and starts it. */
  spawn(): ChildProcess
  /** Resolves when it can be used. */
  ready(signal: AbortSignal): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** A process that is started again when it dies, later each time, and not for ever. */
export class KeptProcess implements AsyncDisposable {
  readonly #options: KeptOptions
  #state: State = "stopped"
  #child: ChildProcess | undefined
  #deaths = 0
  #lastEnd: string | undefined
  #life: { readonly stop: AbortController; readonly over: Promise<void> } | undefined
  readonly #waiting = new Set<() => void>()

  constructor(options: KeptOptions) {
    this.#options = options
  }

  report(): Omit<RunnerReport, "user"> {
    const pid = this.#child?.pid
    return {
      state: this.#state,
      deaths: this.#deaths,
      ...(pid === undefined ? {} : { pid }),
      ...(this.#lastEnd === undefined ? {} : { lastEnd: this.#lastEnd }),
    }
  }

  /** Resolves when it runs and is ready; two callers share one start. */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#life?.stop.signal.aborted) await this.#life.over
    if (!this.#life) {
      this.#deaths = 0
      this.#enter("starting")
      const stop = new AbortController()
      this.#life = { stop, over: this.#live(stop.signal) }
    }
    while (this.#state === "starting" || this.#state === "waiting") await this.#change(signal)
    if (this.#state === "running") return
    const how = this.#lastEnd === undefined ? "" : ` (${this.#lastEnd})`
    throw new Fault("unavailable", `${this.#options.name} did not start${how}`, {
      hint: "what it said is in said.log in its user's data folder",
    })
  }

  /** Ask, wait, force. May be called twice. */
  async stop(): Promise<void> {
    const life = this.#life
    life?.stop.abort(new Fault("cancelled", "it was told to stop"))
    await life?.over
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #live(stop: AbortSignal): Promise<void> {
    let end: State = "stopped"
    try {
      while (!stop.aborted && (await this.#once(stop))) await this.#pause(stop)
      if (!stop.aborted) end = "failed"
    } catch (thrown) {
      this.#lastEnd = Fault.from(thrown).message
      this.#options.log("error", "process.broken", { name: this.#options.name, message: this.#lastEnd })
      end = "failed"
    } finally {
      this.#life = undefined
      this.#enter(end)
    }
  }

  /** One life; whether it is worth another. */
  async #once(stop: AbortSignal): Promise<boolean> {
    const { name, clock, log } = this.#options
    const begun = clock.monotonic()
    this.#enter("starting")
    const child = this.#options.spawn()
    this.#child = child
    failpoint("process/spawned")
    const gone = endOf(child)
    const ended = new AbortController()
    void gone.then(() => ended.abort())
    const asked = (): void => void child.kill("SIGTERM")
    stop.addEventListener("abort", asked, { once: true })
    if (stop.aborted) asked()
    void this.#becomeReady(child, AbortSignal.any([stop, ended.signal]))
    void this.#force(child, stop, ended.signal)
    this.#lastEnd = await gone
    stop.removeEventListener("abort", asked)
    this.#child = undefined
    if (stop.aborted) return false
    if (clock.monotonic() - begun > keepLimits.settledMs) this.#deaths = 0
    this.#deaths++
    log("warn", "process.died", { name, end: this.#lastEnd, deaths: this.#deaths })
    return this.#deaths < keepLimits.deathsMax
  }

  /** One that lives and is never ready is of no use: it dies, which is counted. */
  async #becomeReady(child: ChildProcess, over: AbortSignal): Promise<void> {
    const { clock, log, name } = this.#options
    const tooLong = new AbortController()
    const quiet = new AbortController()
    void clock.sleep(keepLimits.readyMs, AbortSignal.any([over, quiet.signal])).then(
      () => tooLong.abort(),
      () => undefined,
    )
    try {
      await this.#options.ready(AbortSignal.any([over, tooLong.signal]))
      if (over.aborted) return
      log("info", "process.ready", { name, pid: child.pid ?? 0 })
      failpoint("process/ready")
      this.#enter("running")
    } catch {
      if (!over.aborted) child.kill("SIGKILL")
    } finally {
      quiet.abort()
    }
  }

  async #force(child: ChildProcess, stop: AbortSignal, ended: AbortSignal): Promise<void> {
    // With a signal, so that of a life that is over nothing stays with what outlives it.
    if (!stop.aborted) await once(stop, "abort", { signal: ended }).catch(() => undefined)
    try {
      if (!ended.aborted) await this.#options.clock.sleep(keepLimits.stopMs, ended)
      if (!ended.aborted) child.kill("SIGKILL")
    } catch {
      // It ended by itself.
    }
  }

  async #pause(stop: AbortSignal): Promise<void> {
    this.#enter("waiting")
    await this.#options.clock.sleep(backoffMs(this.#deaths, keepLimits), stop).catch(() => undefined)
  }

  #enter(state: State): void {
    this.#state = state
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiting.delete(wake)
        reject(signal.reason as Error)
      }
      const wake = (): void => {
        signal.removeEventListener("abort", abort)
        resolve()
      }
      if (signal.aborted) return reject(signal.reason as Error)
      signal.addEventListener("abort", abort, { once: true })
      this.#waiting.add(wake)
    })
  }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (failure) => resolve(`could not be started: ${failure.message}`))
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
}
