import type { Socket } from "node:net"
import { isCancellation } from "@warren/base/fault.ts"
import { Denied } from "./denied.ts"
import { dial } from "./dial.ts"
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
  #opened = 0
  #sentBytes = 0
  #receivedBytes = 0

  constructor(policy: Policy, resolve: Resolve, limits: EgressLimits) {
    this.policy = policy
    this.#resolve = resolve
    this.#limits = limits
  }

  /** Resolves once, checks every address, and dials what was checked. */
  async open(target: Target, signal: AbortSignal): Promise<Socket> {
    this.policy.checkTarget(target)
    const addresses = target.isAddress ? [target.name] : await this.#addresses(target, signal)
    // One forbidden address condemns the name: whoever answers for it tries to lead us somewhere.
    for (const address of addresses) this.policy.checkAddress(target, address)
    const { address, socket } = await this.#dialFirst(target, addresses, signal)
    const route = { target, address, socket }
    this.#add(route)
    // The policy may have changed while this was dialled.
    this.#check(route)
    return socket
  }

  /** Takes a new policy, and cuts what it forbids. Says what was cut. */
  replace(policy: Policy): { target: Target; fault: Denied }[] {
    this.policy = policy
    return [...this.#open].flatMap((route) => {
      try {
        this.#check(route)
        return []
      } catch (thrown) {
        if (!(thrown instanceof Denied)) throw thrown
        return [{ target: route.target, fault: thrown }]
      }
    })
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

  #check({ target, address, socket }: Route): void {
    try {
      this.policy.checkTarget(target)
      this.policy.checkAddress(target, address)
    } catch (cause) {
      const fault = new Denied("policy-changed", `${target.name} is no longer allowed`, cause)
      socket.destroy(fault)
      throw fault
    }
  }

  async #addresses(target: Target, signal: AbortSignal): Promise<readonly string[]> {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.resolveMs)])
    const late = new Promise<never>((_, reject) => {
      patience.addEventListener("abort", () => reject(patience.reason as Error), { once: true })
    })
    try {
      const addresses = await Promise.race([this.#resolve(target.name, patience), late])
      if (addresses.length > 0) return addresses
    } catch (cause) {
      signal.throwIfAborted()
      throw new Denied("unresolved", `${target.name} could not be resolved`, cause)
    }
    throw new Denied("unresolved", `${target.name} has no address`)
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
    throw new Denied("unreachable", `${target.name} does not answer on port ${target.port}`, cause)
  }
}
