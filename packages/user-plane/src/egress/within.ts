import { Fault } from "@warren/base/fault.ts"

/** Does not wait longer than this for work that may not listen to its signal. */
export function within<T>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const patience = new AbortController()
    const stop = (reason: unknown): void => {
      patience.abort(reason)
      settle(() => reject(reason))
    }
    const abort = (): void => stop(signal.reason)
    const timer = setTimeout(() => stop(new Fault("timeout", "no answer in time")), ms)
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", abort)
      act()
    }
    signal.addEventListener("abort", abort, { once: true })
    if (signal.aborted) return abort()
    Promise.resolve()
      .then(() => work(patience.signal))
      .then(
        (value) => settle(() => resolve(value)),
        (thrown: unknown) => settle(() => reject(thrown)),
      )
  })
}
