import { keepNewest } from "@warren/base/keep-newest.ts"
import type { Store } from "../store/store.ts"
import type { Principal } from "../visit.ts"

interface Kept {
  readonly principal: Principal
  /** From then on it does not count. */
  readonly overAt: number
  readonly usedAt: number | undefined
}

const keptMax = 10_000

/**
 * Whom tokens and sign-ins were found to be of, kept until anything changes about who may. Looking it up costs as much as all
 * the rest of a small request; a revocation is such a change, so it counts at once all the same. On a database that
 * others write to, nothing is kept.
 */
export class Found {
  readonly #store: Pick<Store, "version">
  readonly #kept = new Map<string, Kept>()
  #version: number | undefined

  constructor(store: Pick<Store, "version">) {
    this.#store = store
  }

  /** What is kept under this key, or what `look` finds; undefined when there is nothing, or it is over. */
  async of(key: string, now: number, look: () => Promise<Kept | undefined>): Promise<Kept | undefined> {
    const { version } = this.#store
    if (version !== this.#version) this.#kept.clear()
    this.#version = version
    const kept = this.#kept.get(key)
    if (kept && kept.overAt > now) return kept
    const found = await look()
    if (!found || found.overAt <= now) return undefined
    // It may have changed while it was looked up.
    if (version !== undefined && version === this.#store.version) keepNewest(this.#kept, keptMax, key, found)
    return found
  }
}
