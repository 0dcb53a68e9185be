import { writeFileSync } from "node:fs"

/**
 * Node opens a port for debuggers when it is sent SIGUSR1. A port of the machine is open to all its users, whoever sent the signal:
 * one of them could then read and change everything in here. And where a crash leaves a core, whatever the machine's limits say (one that
 * goes to a program is bound by none), it has none of the memory in it: there are people's keys and words in there.
 */
export function refuseDebuggers(): void {
  process.on("SIGUSR1", () => undefined)
  try {
    writeFileSync("/proc/self/coredump_filter", "0")
  } catch {
    // A kernel that writes no cores, or a sandbox, where the limit is zero.
  }
}
