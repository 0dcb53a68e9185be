import { Agent, type ClientRequestArgs } from "node:http"
import type { Duplex } from "node:stream"
import type { Sandbox } from "@warren/drivers/driver.ts"
import { connectPort } from "@warren/drivers/init/port.ts"
import { gatewayLimits } from "./limits.ts"

/** Where something listens in a sandbox. */
export type Place = Parameters<typeof connectPort>[1]

/** Where a request goes. */
export interface Inside extends ClientRequestArgs {
  readonly sandbox: Sandbox
  readonly place: Place
}

type Connected = (failure: Error | null, stream: Duplex) => void

/** Connections to ports inside sandboxes, kept a while for the next request: each new one is a new process inside. */
export class InsideAgent extends Agent {
  constructor() {
    const { spareMax, spareMs } = gatewayLimits
    super({ keepAlive: true, maxFreeSockets: spareMax, timeout: spareMs, scheduling: "lifo" })
  }

  override getName(options?: ClientRequestArgs): string {
    const { sandbox, place } = options as Inside
    return `${sandbox.id} ${"port" in place ? place.port : place.path}`
  }

  override createConnection(options: ClientRequestArgs, connected?: Connected): undefined {
    connectInside(options, connected ?? (() => undefined))
    return undefined
  }
}

/** The one way from here to a program: init connects, inside. There is no address in it, so it cannot lead elsewhere. */
export function connectInside(options: ClientRequestArgs, connected: Connected): undefined {
  const { sandbox, place } = options as Inside
  connectPort(sandbox, place, AbortSignal.timeout(gatewayLimits.connectMs)).then(
    (stream) => connected(null, stream),
    // The stream that Node asks for beside an error is not looked at.
    (failure: Error) => connected(failure, undefined as unknown as Duplex),
  )
  return undefined
}
