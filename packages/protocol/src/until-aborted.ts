/** Rejects with the signal's reason; `forget` it when it is not waited for any more. */
export function untilAborted(signal: AbortSignal): { readonly promise: Promise<never>; forget(): void } {
  let abort = (): void => undefined
  const promise = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener("abort", abort, { once: true })
  })
  // Nobody may be listening yet, or any more.
  promise.catch(() => undefined)
  return { promise, forget: () => signal.removeEventListener("abort", abort) }
}
