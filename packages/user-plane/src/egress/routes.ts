import type { Socket } from "node:net"
import { isCancellation } from "@warren/base/fault.ts"
import { Denied } from "./denied.ts"
import { dial } from "./dial.ts"
import { within } from "./within.ts"
import type { Target } from "./host.ts"
import type { EgressLimits } from "./limits.ts"
import type { Policy } from "./policy.ts"
import type { Resolve } from "./resolver.ts"

/** An open connection to the outside. */
interface Route {
  readonly target: Target
  readonly address: string
  readonly socket: Socket
}

/** Every way out that is open: each was allowed when it was opened, and is cut when it no longer is. */
export class Routes {
  policy: Policy
  readonly #open = new Set<Route>()
  readonly #resolve: Resolve
  readonly #limits: EgressLimits
  #opening = 0
  #opened = 0
  #sentBytes = 0
  #receivedBytes = 0

  constructor(policy: Policy, resolve: Resolve, limits: EgressLimits) {
    this.policy = policy
    this.#resolve = resolve
    this.#limits = limits
  }

  async open(target: Target, signal: AbortSignal): Promise<Socket> {
    this.policy.checkTarget(target)
    // One connection from the sandbox can ask for many: requests may be sent without waiting for answers.
    if (this.#open.size + this.#opening >= this.#limits.connectionsMax) {
      throw new Denied("limit", `more than ${this.#limits.connectionsMax} connections to the outside`)
    }
    this.#opening++
    try {
      return await this.#connect(target, signal)
    } finally {
      this.#opening--
    }
  }

  /** Resolves once, checks every address, and dials what was checked. */
  async #connect(target: Target, signal: AbortSignal): Promise<Socket> {
    const addresses = target.isAddress ? [target.name] : await this.#addresses(target, signal)
    // One forbidden address condemns the name: whoever answers for it tries to lead us somewhere.
    for (const address of addresses) this.policy.checkAddress(target, address)
    const { address, socket } = await this.#dialFirst(target, addresses, signal)
    const route = { target, address, socket }
    this.#add(route)
    // The policy may have changed while this was dialled.
    const fault = this.#cutIfForbidden(route)
    if (fault) throw fault
    return socket
  }

  /** Takes a new policy, and cuts what it forbids; whoever uses it finds out why. Says how many. */
  replace(policy: Policy): number {
    this.policy = policy
    const forbidden = [...this.#open].filter((route) => this.#cutIfForbidden(route) !== undefined)
    return forbidden.length
  }

  counters(): { opened: number; open: number; sentBytes: number; receivedBytes: number } {
    const open = [...this.#open]
    return {
      opened: this.#opened,
      open: open.length,
      sentBytes: open.reduce((sum, { socket }) => sum + socket.bytesWritten, this.#sentBytes),
      receivedBytes: open.reduce((sum, { socket }) => sum + socket.bytesRead, this.#receivedBytes),
    }
  }

  close(): void {
    for (const { socket } of this.#open) socket.destroy()
  }

  #add(route: Route): void {
    const { socket } = route
    this.#opened++
    this.#open.add(route)
    // Whoever uses it hears of its errors too; without a listener they would end the process.
    socket.on("error", () => undefined)
    socket.once("close", () => {
      this.#open.delete(route)
      this.#sentBytes += socket.bytesWritten
      this.#receivedBytes += socket.bytesRead
    })
  }

  #cutIfForbidden({ target, address, socket }: Route): Denied | undefined {
    try {
      this.policy.checkTarget(target)
      this.policy.checkAddress(target, address)
      return undefined
    } catch (cause) {
      const fault = new Denied("policy-changed", `${target.name} is no longer allowed`, { cause })
      socket.destroy(fault)
      return fault
    }
  }

  async #addresses(target: Target, signal: AbortSignal): Promise<readonly string[]> {
    let addresses: readonly string[]
    try {
      addresses = await within(this.#limits.resolveMs, signal, (patience) => this.#resolve(target.name, patience))
    } catch (cause) {
      signal.throwIfAborted()
      throw new Denied("unresolved", `${target.name} could not be resolved`, { cause })
    }
    if (addresses.length === 0) throw new Denied("unresolved", `${target.name} has no address`)
    return addresses
  }

  async #dialFirst(
    target: Target,
    addresses: readonly string[],
    signal: AbortSignal,
  ): Promise<{ address: string; socket: Socket }> {
    const deadline = performance.now() + this.#limits.connectMs
    let cause: unknown
    for (const address of addresses.slice(0, this.#limits.addressesMax)) {
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) break
      try {
        const socket = await dial(address, target.port, Math.min(leftMs, this.#limits.connectOneMs), signal)
        return { address, socket }
      } catch (thrown) {
        if (isCancellation(thrown)) throw thrown
        cause = thrown
      }
    }
    throw new Denied("unreachable", `${target.name} does not answer on port ${target.port}`, { cause })
  }
}
