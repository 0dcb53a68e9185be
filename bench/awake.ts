import { spawn } from "node:child_process"
import { availableParallelism } from "node:os"

/**
 * Keeps the processors from sleeping while something short is measured. A virtual processor that has halted takes the
 * hypervisor 50 to 100 µs to wake: on an idle machine that is all a round trip of 40 µs would show. They run only when nobody else
 * wants to, and subject and baseline have the same company.
 */
export function keepAwake(): Disposable {
  const idlers = Array.from({ length: availableParallelism() }, () =>
    spawn("nice", ["-n", "19", process.execPath, "-e", "for (;;);"], { stdio: ["ignore", "ignore", "ignore"] }),
  )
  return { [Symbol.dispose]: () => idlers.forEach((idler) => idler.kill("SIGKILL")) }
}
