import { chmod } from "node:fs/promises"
import { join } from "node:path"
import type { Clock } from "@warren/base/clock.ts"
import { ensureFolder } from "@warren/base/folder.ts"
import type { Log } from "@warren/base/log.ts"
import type { z } from "zod"
import { brokerEnvironment } from "../broker/broker-environment.ts"
import type { Broker } from "../broker/broker.ts"
import { canonicalDestination, type GrantedLease, type Lease, type LeaseId, type LeaseScope } from "../broker/lease.ts"
import type { Leases } from "../broker/leases.ts"
import type { Denials } from "./denials.ts"
import type { EgressLimits } from "./limits.ts"
import { Policy, type EgressPolicy } from "./policy.ts"
import { proxyEnvironment } from "./proxy-environment.ts"
import { EgressProxy, type EgressCounters } from "./proxy.ts"
import type { Resolve } from "./resolver.ts"

/** A key that a session may use without seeing it. */
export interface Credential {
  readonly scope: LeaseScope
  readonly destination: string
}

export interface SessionEgressOptions {
  readonly session: string
  /** The folder of the network `proxy`. Opened again at the same place, it serves a sandbox that outlived the runner. */
  readonly folder: string
  readonly policy: z.input<typeof EgressPolicy>
  /** What `setCredentials` is told at once; without it, leases of earlier runners stay as they are until it is told. */
  readonly credentials?: readonly Credential[]
  readonly broker: Broker
  readonly leases: Leases
  /** Keeps a new policy for the next runner: called, and waited for, before it is in force. */
  readonly keepPolicy: (policy: EgressPolicy) => void | Promise<void>
  readonly log: Log
  readonly clock: Clock
  readonly resolve?: Resolve
  readonly limits?: Partial<EgressLimits>
}

const leaseMs = 24 * 3_600_000
/** In force at a time for one credential: a runner that starts again cannot read the tokens of the one before, and grants new ones. */
const leasesMax = 8
const socketName = "proxy.sock"

/** Opens a session's way out. May be done again at the same folder, by the next runner. */
export async function openEgress(options: SessionEgressOptions): Promise<SessionEgress> {
  const { folder, session, clock } = options
  ensureFolder(folder)
  // Whoever is inside must get to the socket, as whatever user; only this folder is bound there.
  await chmod(folder, 0o755)
  const proxy = await EgressProxy.listen({
    path: join(folder, socketName),
    socketMode: 0o666,
    policy: options.policy,
    local: options.broker.handler(session),
    log: options.log.with({ session }),
    now: () => clock.now(),
    ...(options.resolve && { resolve: options.resolve }),
    ...(options.limits && { limits: options.limits }),
  })
  const egress = new SessionEgress(options, proxy)
  if (options.credentials) egress.setCredentials(options.credentials)
  return egress
}

/** One session's way out: its proxy, what it may reach, what it was refused, and the keys it may use without seeing them. */
export class SessionEgress implements AsyncDisposable {
  readonly folder: string
  readonly #options: SessionEgressOptions
  readonly #proxy: EgressProxy
  /** By scope and destination. The token of a lease is known only to the process that granted it. */
  readonly #granted = new Map<string, GrantedLease>()
  #credentials: readonly Credential[] = []
  #changing: Promise<unknown> = Promise.resolve()

  constructor(options: SessionEgressOptions, proxy: EgressProxy) {
    this.folder = options.folder
    this.#options = options
    this.#proxy = proxy
  }

  get policy(): EgressPolicy {
    return this.#proxy.policy
  }

  /** Kept first, then in force, for what is open too. Says how many connections were cut. One change at a time. */
  setPolicy(input: z.input<typeof EgressPolicy>): Promise<number> {
    const change = async (): Promise<number> => {
      const { data } = new Policy(input)
      await this.#options.keepPolicy(data)
      return this.#proxy.replacePolicy(data)
    }
    const changed = this.#changing.then(change)
    this.#changing = changed.catch(() => undefined)
    return changed
  }

  /** What was refused: a feed, and a list by kind. */
  get denials(): Denials {
    return this.#proxy.denials
  }

  counters(): EgressCounters {
    return this.#proxy.counters()
  }

  /** What is weaker than it could be: for the sandbox's posture. */
  degraded(): string[] {
    return this.#proxy.degraded()
  }

  /**
   * For every command of this session, asked for anew each time: leases are renewed on the way, long before they end. One that an
   * earlier runner granted stays in force for the programs that have it.
   */
  environment(): Record<string, string> {
    const leases = this.#credentials.map((credential) => this.#lease(credential))
    return { ...proxyEnvironment(), ...brokerEnvironment(leases) }
  }

  /** From the next environment on. Leases for what is no longer there end at once, those of earlier runners too. */
  setCredentials(credentials: readonly Credential[]): void {
    this.#credentials = credentials.map(({ scope, destination }) => ({
      scope,
      destination: canonicalDestination(destination),
    }))
    for (const lease of this.leases()) {
      if (!this.#credentials.some((one) => isFor(lease, one))) this.#options.leases.revoke(lease.id)
    }
  }

  /** The leases in force, those of earlier runners too; without their tokens. */
  leases(): readonly Lease[] {
    return this.#options.leases.list(this.#options.session)
  }

  /** Cuts what runs on it. The next environment has a new one, as long as its credential is there. */
  revoke(id: LeaseId): boolean {
    const isOurs = this.leases().some((lease) => lease.id === id)
    return isOurs && this.#options.leases.revoke(id)
  }

  /** The session is over: its leases end with its connections. */
  async end(): Promise<void> {
    this.#options.leases.revokeSession(this.#options.session)
    this.#granted.clear()
    await this[Symbol.asyncDispose]()
  }

  /** Cuts everything; the leases stay for whoever opens it again. May be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy[Symbol.asyncDispose]()
  }

  #lease(credential: Credential): GrantedLease {
    const { session, leases, clock } = this.#options
    const key = `${credential.scope} ${credential.destination}`
    const known = this.#granted.get(key)
    const isFresh = known !== undefined && known.expiresAt - clock.now() > leaseMs / 2
    if (isFresh && leases.find(known.token)?.revokedAt === undefined) return known
    const inForce = this.leases().filter((lease) => isFor(lease, credential))
    for (const old of inForce.slice(0, Math.max(0, inForce.length - leasesMax + 1))) leases.revoke(old.id)
    const lease = leases.grant({ session, ...credential, ttlMs: leaseMs })
    this.#granted.set(key, lease)
    return lease
  }
}

function isFor(lease: Lease, { scope, destination }: Credential): boolean {
  return lease.scope === scope && lease.destination === destination
}
