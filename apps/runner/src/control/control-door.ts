import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import { StatementVerifier } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { RpcDoor } from "../rpc-door.ts"
import type { AccessLog } from "./access-log.ts"
import { admission } from "./admission.ts"
import { ControlKey } from "./control-key.ts"
import { limitedPlane } from "./limited-plane.ts"

interface ControlDoorOptions {
  readonly path: string
  /** A socket that is open already. */
  readonly fd?: number | undefined
  readonly group: number
  /** The file with the control plane's public key. */
  readonly keyFile: string
  /** Whose runner this is. */
  readonly user: string
  readonly plane: UserPlane
  readonly access: AccessLog
  readonly clock: Clock
  readonly log: Log
  readonly build: string
}

/** The control plane's socket: whoever can connect still has to show, with each request, for whom it asks. */
export function openControlDoor(options: ControlDoorOptions): Promise<RpcDoor> {
  const { clock, user, log, build } = options
  const key = new ControlKey(
    options.keyFile,
    () => clock.monotonic(),
    () => verifier.forget(),
  )
  const verifier = new StatementVerifier({ user, now: () => clock.now(), keys: (isNewWanted) => key.keys(isNewWanted) })
  return RpcDoor.open({
    path: options.path,
    fd: options.fd,
    group: options.group,
    caller: { name: "" },
    contract: userPlane,
    handlers: limitedPlane(options.plane),
    admit: admission(verifier, options.access),
    log: log.with({ door: "control" }),
    build,
  })
}
