import { Resolver as Dns } from "node:dns/promises"
import { errnoOf } from "@warren/base/fault.ts"

/** Asks once where a name leads. An empty answer means nowhere. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>

const triesMax = 2
const tryMs = 3_000

/**
 * The machine's DNS servers, without `/etc/hosts`, search domains or the thread pool: a name means the same as outside, and one
 * that never answers holds up nothing else.
 */
export const resolveByDns: Resolve = (name, signal) =>
  resolveBy(new Dns({ timeout: tryMs, tries: triesMax }), name, signal)

export async function resolveBy(dns: Dns, name: string, signal: AbortSignal): Promise<readonly string[]> {
  const cancel = (): void => dns.cancel()
  signal.addEventListener("abort", cancel, { once: true })
  try {
    const [four, six] = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
    const found = [four, six].flatMap((one) => (one.status === "fulfilled" ? one.value : []))
    const failure = [four, six]
      .flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []))
      .find(isFailure)
    if (found.length === 0 && failure) throw failure
    return found
  } finally {
    signal.removeEventListener("abort", cancel)
  }
}

/** That there is nothing of that name is an answer. */
function isFailure(reason: Error): boolean {
  return errnoOf(reason) !== "ENOTFOUND" && errnoOf(reason) !== "ENODATA"
}
