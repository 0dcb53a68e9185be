import { connectUnix } from "@warren/base/unix-socket.ts"
import type {
  Answer,
  Asked,
  CallName,
  Down,
  FeedName,
  Item,
  Numbered,
  StreamName,
  Up,
} from "@warren/protocol/contract.ts"
import type { Conversation } from "@warren/protocol/conversation.ts"
import { RpcClient } from "@warren/protocol/rpc/client.ts"
import { openStream } from "@warren/protocol/rpc/stream.ts"
import { userPlane } from "@warren/protocol/user-plane.ts"

type Plane = typeof userPlane

/** The runner at the other end of its socket: calls and feeds on one connection, each stream on its own. */
export class Runner implements AsyncDisposable {
  readonly #socket: string
  readonly #client: RpcClient<Plane>
  readonly #signal: AbortSignal

  private constructor(socket: string, client: RpcClient<Plane>, signal: AbortSignal) {
    this.#socket = socket
    this.#client = client
    this.#signal = signal
  }

  static async connect(socket: string, signal: AbortSignal): Promise<Runner> {
    return new Runner(socket, new RpcClient(await connectUnix(socket, signal), userPlane, "cli"), signal)
  }

  call<K extends CallName<Plane>>(name: K, input: Asked<Plane, K>, signal = this.#signal): Promise<Answer<Plane, K>> {
    return this.#client.call(name, input, { signal })
  }

  /** Even when everything else was told to stop: for cleaning up. */
  callAnyway<K extends CallName<Plane>>(name: K, input: Asked<Plane, K>): Promise<Answer<Plane, K>> {
    return this.#client.call(name, input)
  }

  feed<K extends FeedName<Plane>>(name: K, input: Asked<Plane, K>): AsyncGenerator<Numbered<Item<Plane, K>>> {
    return this.#client.feed(name, input, { signal: this.#signal })
  }

  async open<K extends StreamName<Plane>>(
    name: K,
    input: Asked<Plane, K>,
    signal = this.#signal,
  ): Promise<Conversation<Up<Plane, K>, Down<Plane, K>>> {
    return openStream(await connectUnix(this.#socket, signal), userPlane, name, input, signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client[Symbol.asyncDispose]()
  }
}
