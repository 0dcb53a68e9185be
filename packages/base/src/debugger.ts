/**
 * Node opens a port for debuggers when it is sent SIGUSR1. A port of the machine is open to all its users, whoever sent the signal:
 * one of them could then read and change everything in here.
 */
export function refuseDebuggers(): void {
  process.on("SIGUSR1", () => undefined)
}
