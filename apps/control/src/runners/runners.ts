import { lstatSync, type Stats } from "node:fs"
import type { Socket } from "node:net"
import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { isFeed, type Context } from "@warren/protocol/contract.ts"
import { RunnerLink } from "@warren/protocol/rpc/link.ts"
import { remote } from "@warren/protocol/rpc/remote.ts"
import { sessionOf, type StatementSigner } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import { visitOf, type Principal } from "../visit.ts"
import { Heartbeat } from "./heartbeat.ts"

export interface RunnerRoute {
  readonly socket: string
  readonly uid: number
  /** What to do when nothing listens there. */
  readonly hint?: string
}

type Handler = (input: unknown, context: Context) => unknown

interface Known {
  readonly route: RunnerRoute
  readonly link: RunnerLink<typeof userPlane>
  readonly heartbeat: Heartbeat
  readonly plane: UserPlane
  checkedAt: number
}

/** How long it may take until a route that was changed is used. */
const recheckMs = 5_000

/** Every user's runner. What is asked goes to the runner of whoever asks, with a statement that says so, and to no other. */
export class Runners implements AsyncDisposable {
  readonly #routeOf: (user: Principal["user"]) => Promise<RunnerRoute>
  readonly #signer: StatementSigner
  readonly #clock: Clock
  /** Is told what was answered to whom. */
  readonly #heard: (call: string, user: string, answer: unknown) => void
  readonly #known = new Map<string, Known>()

  constructor(
    routeOf: (user: Principal["user"]) => Promise<RunnerRoute>,
    signer: StatementSigner,
    clock: Clock,
    heard: (call: string, user: string, answer: unknown) => void = () => undefined,
  ) {
    this.#heard = heard
    this.#routeOf = routeOf
    this.#signer = signer
    this.#clock = clock
  }

  /** The user plane of whoever asks. */
  handlers(): UserPlane {
    const entries = Object.entries(userPlane).map(([name, entry]) => {
      const key = name as keyof UserPlane
      const known = (context: Context): Promise<Known> => this.#knownOf(visitOf(context).who)
      const ask = async (input: unknown, context: Context): Promise<unknown> => {
        const { plane, heartbeat } = await known(context)
        const answer = await heartbeat.watch((plane[key] as Handler)(input, context) as Promise<unknown>)
        this.#heard(name, visitOf(context).who.user.id, answer)
        return answer
      }
      const follow = async function* (input: unknown, context: Context): AsyncGenerator<unknown> {
        const { plane, heartbeat } = await known(context)
        const followed = heartbeat.follow()
        try {
          const signal = AbortSignal.any([context.signal, followed.signal])
          yield* (plane[key] as Handler)(input, { ...context, signal }) as AsyncIterable<unknown>
        } finally {
          followed.close()
        }
      }
      return [name, isFeed(entry) ? follow : ask]
    })
    return Object.fromEntries(entries) as UserPlane
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#known.values()].map(close))
  }

  async #knownOf({ user }: Principal): Promise<Known> {
    const known = this.#known.get(user.id)
    const now = this.#clock.monotonic()
    if (known && now - known.checkedAt < recheckMs) return known
    const route = await this.#routeOf(user)
    const current = this.#known.get(user.id)
    if (current?.route.socket === route.socket && current.route.uid === route.uid) {
      current.checkedAt = now
      return current
    }
    const fresh = this.#open(route, now)
    this.#known.set(user.id, fresh)
    if (current) await close(current)
    return fresh
  }

  #open(route: RunnerRoute, now: number): Known {
    const link = new OwnedLink(route)
    const hangUp = (): void =>
      void link.client().then(
        (client) => client[Symbol.asyncDispose](),
        () => undefined,
      )
    const heartbeat = new Heartbeat(() => link.connect(), hangUp, this.#clock)
    const plane = remote(userPlane, {
      client: () => link.client(),
      connect: (signal) => link.connect(signal),
      trace: (context) => visitOf(context).trace,
      sign: (call, input, context) => this.#sign(call, input, visitOf(context).who),
    })
    return { route, link, heartbeat, plane, checkedAt: now }
  }

  #sign(call: string, input: unknown, { user, viaId, limits }: Principal): string {
    const session = sessionOf(call, input)
    const { scope } = userPlane[call as keyof typeof userPlane]
    return this.#signer.sign({
      user: user.name,
      call,
      ...(session === undefined ? {} : { session }),
      scope,
      token: viaId,
      ...(limits === undefined ? {} : { limits }),
    })
  }
}

async function close({ link, heartbeat }: Known): Promise<void> {
  heartbeat[Symbol.dispose]()
  await link[Symbol.asyncDispose]()
}

/** A link that connects only to a socket of whom it should be: somebody else's, at that path, would be told everything. */
class OwnedLink extends RunnerLink<typeof userPlane> {
  readonly #route: RunnerRoute

  constructor(route: RunnerRoute) {
    super(userPlane, route.socket, "control", route.hint)
    this.#route = route
  }

  override async connect(signal?: AbortSignal): Promise<Socket> {
    // At once: handing a look at one name to another thread takes longer than the look.
    const found = lookAt(this.#route.socket)
    if (found && (!found.isSocket() || found.uid !== this.#route.uid)) {
      throw new Fault("unavailable", "your runner's socket is not your runner's", { hint: "tell an administrator" })
    }
    return super.connect(signal)
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    // Connecting says what is wrong with it.
    return undefined
  }
}
