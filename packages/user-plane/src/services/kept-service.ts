import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { streamTags } from "@warren/base/frame.ts"
import type { Log } from "@warren/base/log.ts"
import { backoffMs } from "@warren/base/retry.ts"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { Operation } from "@warren/drivers/init/operation.ts"
import { connectPort } from "@warren/drivers/init/port.ts"
import { Chunk } from "@warren/protocol/conversation.ts"
import type { Service, ServiceName } from "@warren/protocol/user-plane/services.ts"
import { marked } from "../sessions/marked.ts"
import { serviceLimits } from "./limits.ts"
import { missingStatus, type Recipe } from "./recipes.ts"

type State = Service["state"]

/** Whoever speaks with a service by its input and output, for one of its lives. */
export interface Line {
  hear(bytes: Buffer): void
  /** Resolves when it answers. */
  ready(signal: AbortSignal): Promise<void>
  end(reason: Fault): void
}

interface KeptOptions {
  readonly session: string
  readonly name: ServiceName
  readonly recipe: Recipe
  readonly sandbox: Sandbox
  readonly env: Readonly<Record<string, string>>
  /** With it, the service has no socket of its own. */
  readonly line?: ((write: (bytes: Buffer) => void) => Line) | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Every legal move. What is not here cannot happen. */
const moves: Readonly<Record<string, { readonly from: readonly State[]; readonly to: State }>> = {
  begin: { from: ["stopped", "waiting", "failed"], to: "starting" },
  ready: { from: ["starting"], to: "running" },
  pause: { from: ["starting", "running"], to: "waiting" },
  giveUp: { from: ["starting", "running"], to: "failed" },
  end: { from: ["stopped", "starting", "running", "waiting", "failed"], to: "stopped" },
}

/** A program in a sandbox that is started again when it ends by itself, later each time and not for ever. Its sandbox's end is its own. */
export class KeptService implements AsyncDisposable {
  readonly #options: KeptOptions
  readonly #stop = new AbortController()
  #state: State = "stopped"
  #ends = 0
  #restarts = 0
  #startedAt: number | undefined
  #complaint = ""
  #fault: Fault | undefined
  #life: Promise<void> | undefined
  readonly #waiting = new Set<() => void>()
  /** Of this life. */
  line: Line | undefined

  constructor(options: KeptOptions) {
    this.#options = options
  }

  get state(): State {
    return this.#state
  }

  get sandbox(): Sandbox {
    return this.#options.sandbox
  }

  report(): Pick<Service, "session" | "name" | "state" | "restarts" | "startedAt" | "detail"> {
    const { session, name } = this.#options
    const detail = this.#fault?.message
    return {
      ...{ session, name, state: this.#state, restarts: this.#restarts },
      ...(this.#startedAt === undefined ? {} : { startedAt: new Date(this.#startedAt).toISOString() }),
      ...(detail === undefined ? {} : { detail }),
    }
  }

  /** Resolves when it can be reached; two callers share one start. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.#stop.signal.aborted) throw new Fault("cancelled", "the service was stopped")
    if (this.#state === "failed") this.#ends = 0
    this.#life ??= this.#live().finally(() => (this.#life = undefined))
    while (this.#state === "starting" || this.#state === "waiting") await this.#change(signal)
    if (this.#state !== "running") throw this.#fault ?? new Fault("cancelled", "the service was stopped")
  }

  /** May be called twice. */
  async stop(): Promise<void> {
    this.#stop.abort(new Fault("cancelled", "the service was stopped"))
    await this.#life
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #live(): Promise<void> {
    const { clock, log, name, session, sandbox } = this.#options
    const stop = AbortSignal.any([this.#stop.signal, endOf(sandbox)])
    for (;;) {
      this.#move("begin")
      const begun = clock.monotonic()
      const ended = await this.#once(stop)
      if (stop.aborted) return this.#move("end")
      log("warn", "service.ended", { session, service: name, message: ended.message })
      this.#fault = ended
      if (clock.monotonic() - begun > serviceLimits.settledMs) this.#ends = 0
      this.#ends++
      if (ended.code === "unsupported" || this.#ends >= serviceLimits.endsMax) return this.#move("giveUp")
      this.#move("pause")
      this.#restarts++
      await clock.sleep(backoffMs(this.#ends, serviceLimits), stop).catch(() => undefined)
      if (stop.aborted) return this.#move("end")
    }
  }

  /** One life, from its start to how it ended. */
  async #once(stop: AbortSignal): Promise<Fault> {
    const { sandbox, clock } = this.#options
    this.#complaint = ""
    const over = new AbortController()
    const signal = AbortSignal.any([stop, over.signal])
    try {
      await using operation = new Operation(await sandbox.connect(signal), this.#request(), signal)
      await operation.event("started")
      this.#startedAt = clock.now()
      this.line = this.#options.line?.((bytes) => void operation.write(bytes))
      void this.#reach(signal).then(
        () => this.#move("ready"),
        (failure: unknown) => over.abort(Fault.from(failure)),
      )
      return await this.#follow(operation)
    } catch (failure) {
      return Fault.from(failure)
    } finally {
      const reason = new Fault("unavailable", "the service has ended", { hint: "try again" })
      over.abort(reason)
      this.line?.end(reason)
      this.line = undefined
    }
  }

  #request() {
    const { name, recipe, env, line } = this.#options
    const argv = marked({ kind: "service", name }, recipe.script)
    return { op: "spawn" as const, argv, env, stdin: line !== undefined }
  }

  /** Resolves when it can be reached, from outside as others will. */
  async #reach(signal: AbortSignal): Promise<void> {
    const { recipe, sandbox, clock, name } = this.#options
    const deadline = clock.monotonic() + serviceLimits.readyMs
    if (this.line) return this.line.ready(AbortSignal.any([signal, AbortSignal.timeout(serviceLimits.readyMs)]))
    for (;;) {
      try {
        if (recipe.socket === undefined) return
        const stream = await connectPort(sandbox, { path: recipe.socket }, signal)
        stream.destroy()
        return
      } catch (failure) {
        if (signal.aborted) throw failure
        if (clock.monotonic() > deadline)
          throw new Fault("timeout", `${name} was not there after ${serviceLimits.readyMs / 1000} s${this.#said()}`)
        await clock.sleep(serviceLimits.lookMs, signal)
      }
    }
  }

  async #follow(operation: Operation): Promise<Fault> {
    const { name, recipe } = this.#options
    for (;;) {
      const item = await operation.next()
      if (item instanceof Chunk) this.#heard(item)
      else if (item.ev === "exit") {
        if (item.code === missingStatus)
          return new Fault("unsupported", `this session has no program for ${name}`, { hint: recipe.hint })
        return new Fault("unavailable", `${name} ended with ${item.signal ?? item.code}${this.#said()}`)
      }
    }
  }

  #heard({ tag, bytes }: Chunk): void {
    if (this.line && tag === streamTags.stdout) return this.line.hear(bytes)
    this.#complaint = (this.#complaint + bytes.toString()).slice(-serviceLimits.complaintChars)
  }

  #said(): string {
    const said = this.#complaint.trim()
    return said === "" ? "" : `: ${said}`
  }

  #move(move: string): void {
    const { from = [], to = "stopped" } = moves[move] ?? {}
    if (!from.includes(this.#state)) return
    this.#state = to
    if (to === "running") this.#fault = undefined
    for (const wake of [...this.#waiting]) wake()
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#waiting.delete(done)
        signal.removeEventListener("abort", done)
        if (signal.aborted) reject(signal.reason)
        else resolve()
      }
      this.#waiting.add(done)
      signal.addEventListener("abort", done, { once: true })
      if (signal.aborted) done()
    })
  }
}

/** Aborts when the sandbox has ended. */
function endOf({ ended }: Sandbox): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => controller.abort(new Fault("unavailable", "the sandbox has ended"))
  ended.then(abort, abort)
  return controller.signal
}
