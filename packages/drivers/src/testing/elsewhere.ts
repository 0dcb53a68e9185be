import { resolve } from "node:path"

const top = resolve(import.meta.dirname, "../../../..")

/** Where somebody else finds this checkout. */
export const checkout = "/mnt"

/**
 * A command in a mount namespace of its own in which this checkout is at `/mnt`: it may lie in a folder that only its owner can pass
 * through, and the tests of ordinary users would then fail for nothing.
 */
export function withCheckout(argv: readonly string[]): [program: string, args: string[]] {
  const script = `mount --bind "$0" ${checkout} && cd ${checkout} && exec "$@"`
  return ["unshare", ["--mount", "--propagation", "private", "sh", "-c", script, top, ...argv]]
}
