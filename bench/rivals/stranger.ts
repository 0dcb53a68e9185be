import { existsSync } from "node:fs"
import type { Baseline, Stranger } from "../baseline.ts"
import { memoryOfGroup } from "../sandbox-memory.ts"
import type { Absent, Rival } from "./rival.ts"

const programs: Readonly<Record<Stranger, { readonly path: string; readonly how: string }>> = {
  crun: {
    path: "/usr/bin/crun",
    how: "overlays, `crun run` of `true` (libseccomp compiles the same table, it makes the groups), overlays away; `crun exec`",
  },
  runc: { path: "/usr/sbin/runc", how: "the same with runc and the same config.json; `runc exec`" },
  bwrap: {
    path: "/usr/bin/bwrap",
    how: "overlays and groups by hand, bwrap with our compiled filter; one id mapped, no rlimits. It has no exec: `nsenter`, which leaves the filter out",
  },
}

/** A program other than ours on the very root, mounts, masks and limits of our sandboxes, started and timed by the C program of the baselines. */
export class StrangeRival implements Rival {
  readonly name: Stranger
  readonly how: string
  readonly #baseline: Baseline
  #count = 0

  constructor(name: Stranger, baseline: Baseline) {
    this.name = name
    this.how = programs[name].how
    this.#baseline = baseline
  }

  static absent(name: Stranger): Absent | undefined {
    return existsSync(programs[name].path) ? undefined : { name, why: `not installed: apt-get install ${name}` }
  }

  cycle(): Promise<number> {
    return this.#baseline.take(`${this.name} cycle`)
  }

  async start(): Promise<void> {
    await this.#baseline.take(`${this.name} start`)
    this.#count++
  }

  exec(): Promise<number> {
    return this.#baseline.take(`${this.name} exec`)
  }

  memory(): Promise<number> {
    let total = 0
    for (let number = 1; number <= this.#count; number++) {
      const { own, kernel } = memoryOfGroup(`${this.#baseline.parent}/${this.name}-${number}`)
      total += own + kernel
    }
    return Promise.resolve(total)
  }

  async stop(): Promise<void> {
    await this.#baseline.take(`${this.name} stop`)
    this.#count = 0
  }
}
