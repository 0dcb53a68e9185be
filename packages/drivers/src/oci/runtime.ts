import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { Fault } from "@warren/base/fault.ts"

export type RuntimeName = "crun" | "runc" | "runsc"

/** An OCI runtime on this machine. */
export interface Runtime {
  readonly name: Exclude<RuntimeName, "runsc">
  readonly program: string
}

/** Finds it, or says why it cannot be used. */
export function findRuntime(name: RuntimeName): Runtime {
  if (name === "runsc") {
    // Tried with Debian's 20221219: it wants a user namespace of its own inside ours, and has no way to hand a listening
    // socket of the host to PID 1 (--pass-fd came later). Without that socket there is no init, and so no sandbox.
    throw new Fault("unsupported", "gVisor's runsc cannot give init the socket it listens on", {
      hint: "use crun or runc; for a stronger boundary use the microvm driver",
    })
  }
  const folders = (process.env["PATH"] ?? "/usr/bin:/usr/sbin").split(delimiter)
  const program = folders.map((folder) => join(folder, name)).find(isExecutable)
  if (!program) {
    throw new Fault("unavailable", `the OCI runtime ${name} is not installed`, { hint: `apt-get install ${name}` })
  }
  return { name, program }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
