import { Fault } from "@warren/base/fault.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import { isFeed, type Context, type Handlers } from "@warren/protocol/contract.ts"
import { remote, RpcClient } from "@warren/protocol/rpc/client.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"

type Client = RpcClient<typeof userPlane>

/** One user's runner, reached over its socket: connects when first asked, and again when the runner was replaced. */
export class RunnerLink implements AsyncDisposable {
  readonly #socket: string
  #client: Promise<Client> | undefined

  constructor(socket: string) {
    this.#socket = socket
  }

  /** The runner's user plane, in the shape of a local one. */
  handlers(): UserPlane {
    const entries = Object.entries(userPlane).map(([name, entry]) => {
      const key = name as keyof UserPlane
      return [name, isFeed(entry) ? this.#feed(key) : this.#call(key)]
    })
    return Object.fromEntries(entries) as UserPlane
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = await this.#client?.catch(() => undefined)
    await client?.[Symbol.asyncDispose]()
  }

  #call(name: keyof UserPlane) {
    return async (input: never, context: Context): Promise<unknown> => (await this.#plane())[name](input, context)
  }

  #feed(name: keyof UserPlane) {
    const plane = (): Promise<Handlers<typeof userPlane>> => this.#plane()
    return async function* (input: never, context: Context): AsyncGenerator<unknown> {
      yield* (await plane())[name](input, context) as AsyncIterable<unknown>
    }
  }

  async #plane(): Promise<UserPlane> {
    return remote(userPlane, await this.#connected(), (signal) => connectUnix(this.#socket, signal))
  }

  async #connected(): Promise<Client> {
    const attempt = this.#client
    const current = await attempt?.catch(() => undefined)
    if (current?.isOpen) return current
    // Whoever comes first tries again; the others share that try.
    if (this.#client === attempt) this.#client = this.#connect()
    return this.#client ?? this.#connect()
  }

  async #connect(): Promise<Client> {
    try {
      return new RpcClient(await connectUnix(this.#socket), userPlane, "control")
    } catch (cause) {
      throw new Fault("unavailable", "your runner is not running", { cause, hint: "start it with: npm start" })
    }
  }
}
