import type { Clock } from "@warren/base/clock.ts"
import { Fault, messageOf } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Log } from "@warren/base/log.ts"
import type { Plane, Wishes } from "../plane.ts"
import { build, StepFailure, type Recipe } from "./build.ts"
import type { TemplateName } from "./template-name.ts"

const limits = { buildsMax: 500, runningMax: 8, entriesMax: 10_000, pageMax: 100 } as const

interface Entry {
  readonly timestamp: string
  readonly level: "info" | "error"
  readonly message: string
  readonly step?: string
}

/** One build, while it is of interest. */
export interface Build {
  readonly id: string
  readonly key: string
  readonly template: string
  readonly names: readonly TemplateName[]
  readonly limits: NonNullable<Wishes["limits"]>
  status: "waiting" | "building" | "ready" | "error"
  reason?: { readonly message: string; readonly step?: string }
  readonly entries: Entry[]
}

/** Builds that were asked for here. They go on when nobody asks about them, and end with this process. */
export class Builds implements Disposable {
  readonly #clock: Clock
  readonly #log: Log
  readonly #all = new Map<string, Build>()
  readonly #stop = new AbortController()
  #running = 0

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  add(wished: Pick<Build, "key" | "template" | "names" | "limits">): Build {
    const over = [...this.#all.values()].find(({ status }) => status === "ready" || status === "error")
    if (this.#all.size >= limits.buildsMax && over) this.#all.delete(over.id)
    if (this.#all.size >= limits.buildsMax) throw new Fault("limit", "there are too many builds")
    const made: Build = { ...wished, id: newId("bld"), status: "waiting", entries: [] }
    this.#all.set(made.id, made)
    return made
  }

  get(key: string, id: string): Build {
    const found = this.#all.get(id)
    if (found?.key === key) return found
    throw new Fault("not_found", `build ${id} not found`)
  }

  start(made: Build, recipe: Recipe, plane: Plane): void {
    if (made.status !== "waiting") throw new Fault("conflict", "the build was started already")
    if (this.#running >= limits.runningMax) throw new Fault("limit", "too many builds are running")
    this.#running++
    made.status = "building"
    void this.#run(made, recipe, plane.beyond(this.#stop.signal)).finally(() => this.#running--)
  }

  /** What was said after so many entries. */
  page({ entries }: Build, offset: number): Entry[] {
    return entries.slice(offset, offset + limits.pageMax)
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Fault("cancelled", "Warren is stopping"))
  }

  async #run(made: Build, recipe: Recipe, plane: Plane): Promise<void> {
    const say = (message: string, step?: string, level: Entry["level"] = "info"): void => {
      if (made.entries.length >= limits.entriesMax) return
      const timestamp = new Date(this.#clock.now()).toISOString()
      for (const line of message.split("\n").filter((text) => text !== ""))
        made.entries.push({ timestamp, level, message: line, ...(step === undefined ? {} : { step }) })
    }
    try {
      await build(recipe, { plane, clock: this.#clock, teller: { say }, limits: made.limits, names: made.names })
      made.status = "ready"
    } catch (thrown) {
      const fault = Fault.from(thrown)
      if (fault.code === "internal") this.#log("error", "e2b.build", { message: messageOf(thrown) })
      say(fault.message, undefined, "error")
      made.reason = { message: fault.message, ...(thrown instanceof StepFailure ? { step: thrown.step } : {}) }
      made.status = "error"
    }
  }
}
