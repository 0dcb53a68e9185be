import { ProcessGroup, type Launch } from "./process-group.ts"

/** The programs an adapter has started and that still run. Closing it ends them all. */
export class ProcessGroups implements AsyncDisposable {
  readonly #running = new Set<ProcessGroup>()

  async start(launch: Launch): Promise<ProcessGroup> {
    const group = await ProcessGroup.start(launch)
    this.#running.add(group)
    void group.exited.then(() => this.#running.delete(group))
    return group
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((group) => group.stop()))
  }
}
