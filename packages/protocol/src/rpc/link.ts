import type { Socket } from "node:net"
import { Fault } from "@warren/base/fault.ts"
import { connectUnix } from "@warren/base/unix-socket.ts"
import type { Contract, Handlers } from "../contract.ts"
import { RpcClient } from "./client.ts"
import { remote, type Reach } from "./remote.ts"

/**
 * One user's runner, reached over its socket: connects when first asked, and again when the runner was replaced. Calls and
 * feeds share a connection, each stream has its own.
 */
export class RunnerLink<C extends Contract> implements AsyncDisposable, Reach<C> {
  readonly #contract: C
  readonly #socket: string
  readonly #name: string
  readonly #hint: string
  #client: Promise<RpcClient<C>> | undefined
  #isClosed = false

  /** The name is what the runner's log says of who asks; the hint, what to do when there is no runner. */
  constructor(contract: C, socket: string, name: string, hint = "start it with: npm start") {
    this.#contract = contract
    this.#socket = socket
    this.#name = name
    this.#hint = hint
  }

  /** What the runner answers, in the shape of handlers that are here. */
  handlers(): Handlers<C> {
    return remote(this.#contract, this)
  }

  async client(): Promise<RpcClient<C>> {
    const attempt = this.#client
    const current = await attempt?.catch(() => undefined)
    if (current?.isOpen) return current
    // Whoever comes first tries again; the others share that try.
    if (this.#client === attempt) this.#client = this.#open()
    return this.#client ?? this.#open()
  }

  async connect(signal?: AbortSignal): Promise<Socket> {
    if (this.#isClosed) throw new Fault("unavailable", "the link to the runner was closed")
    try {
      return await connectUnix(this.#socket, signal)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new Fault("unavailable", "your runner is not running", { cause, hint: this.#hint })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    const client = await this.#client?.catch(() => undefined)
    await client?.[Symbol.asyncDispose]()
  }

  async #open(): Promise<RpcClient<C>> {
    return new RpcClient(await this.connect(), this.#contract, this.#name)
  }
}
