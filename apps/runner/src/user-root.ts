import { join } from "node:path"
import { ensureFolder } from "@warren/base/folder.ts"
import {
  controlSocketOf,
  gatewayMarkerOf,
  gatewaySocketOf,
  rpcSocketOf,
  runnerRootOf,
} from "@warren/protocol/places.ts"

/** Where one user's things are. Nobody else may look inside. */
export interface UserRoot {
  readonly path: string
  readonly rpcSocket: string
  readonly controlSocket: string
  readonly gatewaySocket: string
  readonly gatewayMarker: string
  readonly lock: string
  readonly log: string
  readonly accessLog: string
  /** A file for each session. */
  readonly sessionLogs: string
}

export async function openUserRoot(home: string): Promise<UserRoot> {
  const path = runnerRootOf(home)
  for (const folder of ["shared", "tmp", "vault", "ipc", "logs", "internal", "sandboxes"])
    ensureFolder(join(path, folder), 0o700)
  return {
    path,
    rpcSocket: rpcSocketOf(home),
    controlSocket: controlSocketOf(home),
    gatewaySocket: gatewaySocketOf(home),
    gatewayMarker: gatewayMarkerOf(home),
    lock: join(path, "internal", "lock"),
    log: join(path, "logs", "runner.log"),
    accessLog: join(path, "logs", "access.log"),
    sessionLogs: join(path, "logs", "sessions"),
  }
}
