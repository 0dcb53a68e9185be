import { Fault } from "./fault.ts"

type Releasable = Disposable | AsyncDisposable
type Release = () => void | Promise<void>

/**
 * Owns what was started: closes it in reverse order, all of it, even when one release fails. `signal` aborts first, so
 * that what waits inside lets go before what it uses is taken away.
 */
export class Scope implements AsyncDisposable {
  readonly #releases: Release[] = []
  readonly #controller = new AbortController()
  #closing: Promise<void> | undefined

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  use<T extends Releasable>(thing: T): T {
    this.defer(() => {
      if (Symbol.asyncDispose in thing) return Promise.resolve(thing[Symbol.asyncDispose]())
      thing[Symbol.dispose]()
      return undefined
    })
    return thing
  }

  /** Runs `release` when the scope closes. A scope that has closed owns nothing more: it refuses. */
  defer(release: Release): void {
    if (this.#closing) throw new Fault("conflict", "this scope is closed")
    this.#releases.push(release)
  }

  /** Hands everything to a new scope: for a function that must clean up when it fails and pass on what it made when not. */
  move(): Scope {
    const next = new Scope()
    for (const release of this.#releases.splice(0)) next.defer(release)
    return next
  }

  /** May be called twice; both calls wait for the same end. */
  close(): Promise<void> {
    if (!this.#closing) {
      // Claimed before anybody is told, so that whoever closes or defers while being told finds it closing.
      this.#closing = Promise.resolve().then(() => this.#release())
      this.#controller.abort(new Fault("cancelled", "its owner closed"))
    }
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #release(): Promise<void> {
    const failures: unknown[] = []
    for (const release of this.#releases.toReversed()) {
      try {
        await release()
      } catch (failure) {
        failures.push(failure)
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} things did not close`)
  }
}
