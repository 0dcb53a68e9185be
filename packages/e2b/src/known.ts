const knownMax = 2_000

/** Sandboxes that were heard of lately: a signed address at a shared host says everything but whose file it is. */
export class Known {
  readonly #ids = new Set<string>()

  add(id: string): void {
    this.#ids.delete(id)
    const [oldest] = this.#ids
    if (oldest !== undefined && this.#ids.size >= knownMax) this.#ids.delete(oldest)
    this.#ids.add(id)
  }

  find(fits: (id: string) => boolean): string | undefined {
    return [...this.#ids].toReversed().find(fits)
  }
}
