import { rm } from "node:fs/promises"
import { writeFileAtomic } from "@warren/base/atomic-file.ts"
import type { Clock } from "@warren/base/clock.ts"
import type { Log } from "@warren/base/log.ts"
import { Scope } from "@warren/base/scope.ts"
import { verifyGatewayToken, type GatewayClaims } from "@warren/protocol/gateway-token.ts"
import { Gateway } from "@warren/user-plane/gateway/gateway.ts"
import type { LocalUserPlane } from "@warren/user-plane/user-plane.ts"
import type { AccessLog } from "./control/access-log.ts"
import { ControlKey } from "./control/control-key.ts"

interface GatewayDoorOptions {
  readonly path: string
  /** A socket that is open already. */
  readonly fd?: number | undefined
  /** Where it is written that the gateway is open, and how it is reached. */
  readonly marker: string
  /** The number of the control plane's group, where it is another account than the user's. */
  readonly group: number | undefined
  /** The file with the control plane's public key. */
  readonly keyFile: string
  readonly domain: string
  /** Names separated by spaces. */
  readonly hosts: string
  readonly user: string
  /** The folder that pages were built into. */
  readonly pages: string
  readonly plane: LocalUserPlane
  readonly access: AccessLog
  readonly clock: Clock
  readonly log: Log
}

/** The gateway's socket, and beside it a file that says where it is for as long as it is there. */
export async function openGatewayDoor(options: GatewayDoorOptions): Promise<AsyncDisposable> {
  const { path, marker, group, plane, pages, access, clock, log } = options
  await using scope = new Scope()
  scope.use(
    await Gateway.open({
      ...{
        path,
        fd: options.fd,
        group,
        access,
        clock,
        pages,
        tunnels: plane.tunnels,
        terminals: plane.terminals,
        services: plane.services,
        sessions: plane.engine.sessions,
        verify: verifier(options),
      },
      names: { domain: options.domain, hosts: options.hosts.split(/\s+/).filter((name) => name !== "") },
      log: log.with({ door: "gateway" }),
    }),
  )
  scope.defer(() => rm(marker, { force: true }))
  await writeFileAtomic(marker, `unix:${path}\n`)
  return scope.move()
}

/** The key may have been replaced since it was read: a token that does not fit is looked at with the newest. */
function verifier({ keyFile, clock, user }: GatewayDoorOptions): (token: string) => GatewayClaims {
  const key = new ControlKey(
    keyFile,
    () => clock.monotonic(),
    () => undefined,
  )
  const verify = (token: string, isNewWanted: boolean): GatewayClaims =>
    verifyGatewayToken(token, { keys: key.keys(isNewWanted), user, now: clock.now() })
  return (token) => {
    try {
      return verify(token, false)
    } catch {
      return verify(token, true)
    }
  }
}
