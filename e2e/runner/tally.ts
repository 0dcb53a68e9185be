import type { Day } from "./day.ts"
import type { Notebook } from "./notebook.ts"

/** What a run of kills came across, for the person who reads it. */
export class Tally {
  readonly readyMs: number[] = []
  launchers = 0
  /** Runners that were killed while they recovered. */
  early = 0
  /** Files and programs that were looked at after a restart. */
  files = 0
  programs = 0
  readonly #done = new Map<string, number>()
  readonly #cut = new Map<string, number>()

  add(day: Day, book: Notebook): void {
    for (const [what, count] of day.done) this.#done.set(what, (this.#done.get(what) ?? 0) + count)
    for (const { doing } of book.sessions.values())
      if (doing) this.#cut.set(doing.op, (this.#cut.get(doing.op) ?? 0) + 1)
  }

  words(): string {
    const ready = this.readyMs.toSorted((a, b) => a - b)
    const list = (counts: ReadonlyMap<string, number>): string =>
      [...counts]
        .toSorted(([, a], [, b]) => b - a)
        .map(([what, count]) => `${what} ${count}`)
        .join(", ")
    return [
      `${this.launchers} with the launcher; ${this.files} files and ${this.programs} programs looked at`,
      `answers after ${Math.round(ready[ready.length >> 1] ?? 0)} ms (median), ${Math.round(ready.at(-1) ?? 0)} ms (slowest)`,
      `acknowledged: ${list(this.#done)}`,
      `cut off: ${list(this.#cut)}`,
    ].join("\n  ")
  }
}
