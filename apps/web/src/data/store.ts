import { useSyncExternalStore } from "react"

/** A value that components watch. */
export class Store<T> {
  readonly #watchers = new Set<() => void>()
  #value: T

  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return
    this.#value = value
    for (const watcher of this.#watchers) watcher()
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  readonly read = (): T => this.#value
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.watch, store.read)
}
