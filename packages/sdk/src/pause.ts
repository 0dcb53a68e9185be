/** Waits, or rejects with the signal's reason. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, ms)
    signal?.addEventListener("abort", abort, { once: true })
  })
}

export const retryLimits = {
  /** Tries of one request, the first included. */
  triesMax: 5,
  firstMs: 100,
  longestMs: 5_000,
  /** Longer than this nobody waits because a server asked for it. */
  askedMsMax: 30_000,
} as const

/** How long to wait before try number `tries` + 1: twice as long each time, never all clients at once. */
export function backoffMs(tries: number, askedMs?: number): number {
  if (askedMs !== undefined) return Math.min(askedMs, retryLimits.askedMsMax)
  const full = Math.min(retryLimits.firstMs * 2 ** (tries - 1), retryLimits.longestMs)
  return full / 2 + (Math.random() * full) / 2
}
