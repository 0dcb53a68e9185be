/** How many are asked for at once: what there was of late is what there will be. */
export class Demand {
  /** How many were asked for in each second, the oldest first. */
  readonly #seconds: { readonly second: number; count: number }[] = []

  note(nowMs: number): void {
    const second = Math.floor(nowMs / 1000)
    const last = this.#seconds.at(-1)
    if (last?.second === second) last.count++
    else this.#seconds.push({ second, count: 1 })
    this.#forget(second)
  }

  /** The most that were asked for within two seconds of each other, in the last five minutes. */
  peak(nowMs: number): number {
    this.#forget(Math.floor(nowMs / 1000))
    let peak = 0
    this.#seconds.forEach(({ second, count }, index) => {
      const before = this.#seconds[index - 1]
      peak = Math.max(peak, count + (before?.second === second - 1 ? before.count : 0))
    })
    return peak
  }

  #forget(second: number): void {
    while (this.#seconds.length > 0 && (this.#seconds[0]?.second ?? second) < second - keptSeconds)
      this.#seconds.shift()
  }
}

const keptSeconds = 300

/** What a pool should hold for a demand: a quarter more, within what there is room for. */
export function wanted(peak: number, least: number, roomFor: number): number {
  const comfortable = peak === 0 ? 0 : Math.ceil(peak * 1.25) + 1
  return Math.max(0, Math.min(Math.max(comfortable, least), roomFor))
}
