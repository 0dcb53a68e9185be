import { randomBytes } from "node:crypto"
import { ProcessGroup, type Launch } from "./process-group.ts"
import { runVariable, sweep } from "./sweep.ts"

/** The programs an adapter has started and that still run. Closing it ends them all, and what they put into groups of their own. */
export class ProcessGroups implements AsyncDisposable {
  readonly #running = new Set<ProcessGroup>()
  readonly #id = randomBytes(9).toString("base64url")
  #started = 0

  async start(launch: Launch): Promise<ProcessGroup> {
    const run = `${this.#id}.${++this.#started}.`
    const group = await ProcessGroup.start({ ...launch, env: { ...launch.env, [runVariable]: run } })
    this.#running.add(group)
    void group.exited.then(() => this.#running.delete(group))
    return group
  }

  /** What a program that has ended left behind. */
  sweep(): void {
    if (this.#started > 0) sweep(`${this.#id}.`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((group) => group.stop()))
    this.sweep()
  }
}
