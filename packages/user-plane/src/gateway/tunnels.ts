import { randomBytes } from "node:crypto"
import type { Clock } from "@warren/base/clock.ts"
import { failpoint } from "@warren/base/failpoint.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Database } from "@warren/base/sqlite/database.ts"
import type { Numbered, Received } from "@warren/protocol/contract.ts"
import { Journal } from "@warren/protocol/journal.ts"
import type { Tunnel, tunnelCalls, TunnelEvent } from "@warren/protocol/user-plane/tunnels.ts"
import { pageOf } from "../page.ts"
import type { Sessions } from "../sessions/sessions.ts"
import { labelOf, prefixOf } from "./address.ts"
import { linkPrefix } from "./credentials.ts"
import { hashOf } from "./grants.ts"
import { gatewayLimits } from "./limits.ts"
import { checkHasOwnPorts } from "./own-ports.ts"
import { TunnelStore, type TunnelRecord } from "./tunnel-store.ts"

type Input<K extends keyof typeof tunnelCalls> = Received<typeof tunnelCalls, K>

const eventsKept = 1_000

/** Names for ports inside sessions, and who may reach them. */
export class Tunnels implements AsyncDisposable {
  readonly events = new Journal<TunnelEvent>(eventsKept, Date.now() * 1000)
  readonly #store: TunnelStore
  readonly #sessions: Sessions
  readonly #clock: Clock
  /** By `session name`, as on disk: asked for with every request. */
  readonly #known = new Map<string, TunnelRecord>()
  readonly #listeners = new Set<(gone: Tunnel) => void>()
  readonly #stop = new AbortController()
  readonly #watching: Promise<void>

  constructor(database: Database, sessions: Sessions, clock: Clock) {
    this.#store = new TunnelStore(database)
    this.#sessions = sessions
    this.#clock = clock
    for (const record of this.#store.all()) this.#known.set(keyOf(record.tunnel), record)
    this.#watching = this.#watch(sessions.events.last)
  }

  create({ session: which, name, port, protocol, visibility }: Input<"tunnel.create">): {
    tunnel: Tunnel
    token?: string
  } {
    const record = this.#sessions.record(which)
    checkHasOwnPorts(record.plan)
    const session = record.id
    this.#checkFree(session, name)
    const token = visibility === "link" ? `${linkPrefix}${randomBytes(32).toString("base64url")}` : undefined
    const createdAt = new Date(this.#clock.now()).toISOString()
    const tunnel: Tunnel = {
      ...{ id: newId("tun"), session, name, port, protocol, visibility, createdAt },
      ...{ path: `${prefixOf(session, name)}/`, label: labelOf(session, name) },
    }
    this.#known.set(keyOf(tunnel), this.#keep({ tunnel, tokenHash: token === undefined ? undefined : hashOf(token) }))
    this.events.append({ event: "created", tunnel })
    return { tunnel, ...(token === undefined ? {} : { token }) }
  }

  list({ session, cursor, limit }: Input<"tunnel.list">): { items: Tunnel[]; nextCursor?: string } {
    const id = session === undefined ? undefined : this.#sessions.record(session).id
    const after = cursor === undefined ? 0 : numberOf(cursor)
    const found = [...this.#known.values()].filter(
      ({ number, tunnel }) => number > after && (id === undefined || tunnel.session === id),
    )
    const { items, ...more } = pageOf(found.slice(0, limit + 1), limit, ({ number }) => String(number))
    return { ...more, items: items.map(({ tunnel }) => tunnel) }
  }

  async *follow(
    { session, after }: Input<"tunnel.follow">,
    signal: AbortSignal,
  ): AsyncGenerator<Numbered<TunnelEvent>> {
    const id = session === undefined ? undefined : this.#sessions.record(session).id
    for await (const event of this.events.read(after, signal))
      if (id === undefined || event.item.tunnel.session === id) yield event
  }

  delete({ session: which, name }: Input<"tunnel.delete">): boolean {
    const record = this.#known.get(keyOf({ session: this.#sessions.record(which).id, name }))
    if (!record) return false
    this.#store.remove(record.tunnel.id)
    this.#forget(record)
    return true
  }

  find(session: string, name: string): Tunnel | undefined {
    return this.#known.get(keyOf({ session, name }))?.tunnel
  }

  /** Whether this token is the one of this tunnel's link. */
  isLink({ session, name }: Tunnel, token: string): boolean {
    // Hashes are compared: how long that takes says nothing about the token.
    return this.#known.get(keyOf({ session, name }))?.tokenHash === hashOf(token)
  }

  /** Is told of each that goes, until disposed. */
  onGone(listener: (gone: Tunnel) => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#watching
  }

  /** A session that is deleted has taken its tunnels along on disk; here and for those who follow they go now. */
  async #watch(after: number): Promise<void> {
    const { signal } = this.#stop
    try {
      for await (const { item } of this.#sessions.events.read(after, signal))
        if (item.event === "deleted") this.#forgetAll(({ session }) => session === item.id)
    } catch (thrown) {
      if (signal.aborted) return
      // Fallen behind: what the disk no longer has is gone.
      const kept = new Set(this.#store.all().map(({ tunnel }) => tunnel.id))
      this.#forgetAll(({ id }) => !kept.has(id))
      if (!(thrown instanceof Fault)) throw thrown
      return this.#watch(this.#sessions.events.last)
    }
  }

  #forgetAll(isGone: (tunnel: Tunnel) => boolean): void {
    for (const record of [...this.#known.values()]) if (isGone(record.tunnel)) this.#forget(record)
  }

  #forget({ tunnel }: TunnelRecord): void {
    this.#known.delete(keyOf(tunnel))
    for (const listener of this.#listeners) listener(tunnel)
    this.events.append({ event: "deleted", tunnel })
  }

  /** As it is written down; what nobody was told of does not stay there. */
  #keep(made: Omit<TunnelRecord, "number">): TunnelRecord {
    const { id, session, name } = made.tunnel
    this.#store.add(made)
    try {
      failpoint("tunnel/noted")
      const kept = this.#store.find(session, name)
      if (kept) return kept
      throw new Fault("internal", "a tunnel that was written down is not there")
    } catch (failure) {
      this.#store.remove(id)
      throw failure
    }
  }

  #checkFree(session: string, name: string): void {
    if (this.#known.has(keyOf({ session, name })))
      throw new Fault("conflict", `this session has a tunnel called ${name}`, { hint: "delete it first" })
    const count = [...this.#known.values()].filter(({ tunnel }) => tunnel.session === session).length
    if (count >= gatewayLimits.tunnelsPerSessionMax)
      throw new Fault("limit", `a session has at most ${gatewayLimits.tunnelsPerSessionMax} tunnels`)
  }
}

function keyOf({ session, name }: Pick<Tunnel, "session" | "name">): string {
  return `${session} ${name}`
}

function numberOf(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw new Fault("invalid", "that is not a cursor of ours")
  return Number(cursor)
}
