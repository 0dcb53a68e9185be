import { Fault } from "@warren/base/fault.ts"
import type {
  Answer,
  Asked,
  Caller,
  CallName,
  Context,
  Down,
  FeedName,
  Item,
  Numbered,
  StreamName,
  Up,
} from "@warren/protocol/contract.ts"
import { Chunk, endOfBytes, type Conversation } from "@warren/protocol/conversation.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"

type Table = typeof userPlane
type Handler = (input: unknown, context: Context) => unknown

/** For what has to be done although whoever asked has gone. */
const anywayMs = 30_000

/** The user plane for one request of an MCP client: in whose name, and until when. */
export class Asking {
  readonly signal: AbortSignal
  readonly #plane: UserPlane
  readonly #caller: Caller

  constructor(plane: UserPlane, caller: Caller, signal: AbortSignal) {
    this.#plane = plane
    this.#caller = caller
    this.signal = signal
  }

  /** The same, for as long as this signal says. */
  until(signal: AbortSignal): Asking {
    return new Asking(this.#plane, this.#caller, signal)
  }

  /** The same when the request was cancelled: for cleaning up, and for what must not be left half-known. */
  anyway(): Asking {
    return this.until(AbortSignal.timeout(anywayMs))
  }

  call<K extends CallName<Table>>(name: K, input: Asked<Table, K>): Promise<Answer<Table, K>> {
    return this.ask(name, input) as Promise<Answer<Table, K>>
  }

  async *feed<K extends FeedName<Table>>(
    name: K,
    input: Asked<Table, K>,
  ): AsyncGenerator<Numbered<Item<Table, K>>, void, void> {
    yield* (await this.ask(name, input)) as AsyncIterable<Numbered<Item<Table, K>>>
  }

  stream<K extends StreamName<Table>>(
    name: K,
    input: Asked<Table, K>,
  ): Promise<Conversation<Up<Table, K>, Down<Table, K>>> {
    return this.ask(name, input) as Promise<Conversation<Up<Table, K>, Down<Table, K>>>
  }

  /** Bytes of a file: who asks says how many there may be. */
  async read(input: Asked<Table, "file.read"> & { readonly limit: number }): Promise<Buffer> {
    await using conversation = await this.stream("file.read", input)
    const pieces: Buffer[] = []
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
    }
    return Buffer.concat(pieces)
  }

  async write(input: Asked<Table, "file.write">, bytes: Buffer): Promise<void> {
    await using conversation = await this.stream("file.write", input)
    if (bytes.length > 0) await conversation.write(bytes)
    conversation.send(endOfBytes)
    while ((await conversation.next()) !== undefined);
  }

  /** Any entry by its name, also one that this code was not written with: look whether `has` says that it is there. */
  async ask(name: string, given: object): Promise<unknown> {
    const input = userPlane[name as keyof Table].in.safeParse(given)
    if (!input.success) throw new Fault("invalid", describeIssues(input.error))
    return (this.#plane[name as keyof Table] as Handler)(input.data, { caller: this.#caller, signal: this.signal })
  }
}
