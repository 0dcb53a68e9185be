import { Fault } from "@warren/base/fault.ts"
import type {
  Answer,
  Asked,
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
import { untilGone } from "@warren/protocol/http/routes.ts"
import { describeIssues } from "@warren/protocol/issues.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import type { Context as HonoContext } from "hono"
import type { Visit } from "../visit.ts"

type Table = typeof userPlane
type Handler = (input: unknown, context: Context) => unknown

export interface DoorParts {
  /** Behind the gate: what comes in here may do what the same person may do at the front. */
  readonly plane: UserPlane
  /** Who is asking; throws when nobody said. */
  known(request: Request): Promise<Visit>
}

/** The user plane for one request of somebody else's client. */
export class Ask {
  readonly #plane: UserPlane
  readonly #context: Context

  private constructor(plane: UserPlane, context: Context) {
    this.#plane = plane
    this.#context = context
  }

  static async of({ plane, known }: DoorParts, c: HonoContext): Promise<Ask> {
    return Ask.by(await known(c.req.raw), plane, untilGone(c.req.raw.signal))
  }

  /** For somebody who was made known otherwise. */
  static by(caller: Visit, plane: UserPlane, signal: AbortSignal): Ask {
    return new Ask(plane, { caller, signal })
  }

  /** The same, ended by something else as well. */
  until(signal: AbortSignal): Ask {
    return this.beyond(AbortSignal.any([this.#context.signal, signal]))
  }

  /** The same, which goes on after the request until something else ends it. */
  beyond(signal: AbortSignal): Ask {
    return new Ask(this.#plane, { ...this.#context, signal })
  }

  call<K extends CallName<Table>>(name: K, input: Asked<Table, K>): Promise<Answer<Table, K>> {
    return this.#ask(name, input) as Promise<Answer<Table, K>>
  }

  stream<K extends StreamName<Table>>(
    name: K,
    input: Asked<Table, K>,
  ): Promise<Conversation<Up<Table, K>, Down<Table, K>>> {
    return this.#ask(name, input) as Promise<Conversation<Up<Table, K>, Down<Table, K>>>
  }

  feed<K extends FeedName<Table>>(name: K, input: Asked<Table, K>): AsyncIterable<Numbered<Item<Table, K>>> {
    return this.#given(name, input) as AsyncIterable<Numbered<Item<Table, K>>>
  }

  /** Everything a stream gives: who asks says how much that may be. */
  async bytes<K extends "file.read" | "workspace.read">(name: K, input: Asked<Table, K>): Promise<Buffer> {
    await using conversation = await this.stream(name, input)
    const pieces: Buffer[] = []
    for (let item = await conversation.next(); item !== undefined; item = await conversation.next()) {
      if (item instanceof Chunk) pieces.push(Buffer.from(item.bytes))
    }
    return Buffer.concat(pieces)
  }

  async write<K extends "file.write" | "workspace.write">(
    name: K,
    input: Asked<Table, K>,
    bytes: Buffer,
  ): Promise<void> {
    await using conversation = await this.stream(name, input)
    if (bytes.length > 0) await conversation.write(bytes)
    conversation.send(endOfBytes as Up<Table, K>)
    while ((await conversation.next()) !== undefined);
  }

  async #ask(name: keyof Table, given: object): Promise<unknown> {
    return this.#given(name, given)
  }

  #given(name: keyof Table, given: object): unknown {
    const input = userPlane[name].in.safeParse(given)
    if (!input.success) throw new Fault("invalid", describeIssues(input.error))
    return (this.#plane[name] as Handler)(input.data, this.#context)
  }
}
