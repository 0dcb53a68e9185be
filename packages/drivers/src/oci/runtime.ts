import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { Fault } from "@warren/base/fault.ts"

export type RuntimeName = "crun" | "runc" | "runsc"

/** An OCI runtime on this machine. */
export interface Runtime {
  readonly name: RuntimeName
  readonly program: string
}

export function findRuntime(name: RuntimeName): Runtime {
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
