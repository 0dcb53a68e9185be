/** What is being answered for each sandbox: cut when it is killed or paused, so that nobody waits for it. */
export class Flights {
  readonly #open = new Map<string, Set<AbortController>>()

  open(session: string, ended: AbortSignal): { readonly signal: AbortSignal; close(): void } {
    const controller = new AbortController()
    const all = this.#open.get(session) ?? new Set()
    this.#open.set(session, all.add(controller))
    const close = (): void => {
      all.delete(controller)
      if (all.size === 0 && this.#open.get(session) === all) this.#open.delete(session)
    }
    return { signal: AbortSignal.any([controller.signal, ended]), close }
  }

  cut(session: string, reason: Error): void {
    for (const controller of this.#open.get(session) ?? []) controller.abort(reason)
  }
}
