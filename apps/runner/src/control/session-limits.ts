import { Fault } from "@warren/base/fault.ts"
import type { Context, Item, Numbered } from "@warren/protocol/contract.ts"
import type { Statement } from "@warren/protocol/statement.ts"
import type { userPlane, UserPlane } from "@warren/protocol/user-plane.ts"

type Limits = NonNullable<Statement["limits"]>
type Event = Numbered<Item<typeof userPlane, "session.follow">>
interface Named {
  readonly name: string
}

const pageSize = 200
/** Of a session's snapshots, the ones looked through. */
const snapshotPagesMax = 50
/** Sessions one reader of events is remembered to have seen. */
const seenMax = 10_000
const live = ["starting", "running", "paused", "hibernating", "hibernated", "restoring", "stopping"] as const

/** What of a user's sessions is there for a token that may see only some. */
export class SessionLimits {
  readonly #plane: UserPlane

  constructor(plane: UserPlane) {
    this.#plane = plane
  }

  /** The id of a session that begins with the prefix. One that does not is as absent as one that never was. */
  async find(which: string, context: Context, prefix: string): Promise<string> {
    const session = await this.#plane["session.get"]({ id: which }, context)
    if (session.name.startsWith(prefix)) return session.id
    throw new Fault("not_found", `there is no session ${JSON.stringify(which)}`, { subject: `session:${which}` })
  }

  /** Throws unless it is the chat of a session that begins with the prefix. */
  async checkChat(id: string, context: Context, prefix: string): Promise<void> {
    const { sessionId } = await this.#plane["chat.get"]({ id }, context)
    const absent = new Fault("not_found", `there is no chat ${JSON.stringify(id)}`)
    if (sessionId === undefined) throw absent
    await this.find(sessionId, context, prefix).catch((thrown: unknown) => {
      throw Fault.from(thrown).code === "not_found" ? absent : thrown
    })
  }

  async checkSnapshot(session: string, snapshot: string, context: Context): Promise<void> {
    let cursor: string | undefined
    for (let page = 0; page < snapshotPagesMax; page++) {
      const found = await this.#plane["snapshot.list"]({ session, cursor, limit: pageSize }, context)
      if (found.items.some(({ id }) => id === snapshot)) return
      cursor = found.nextCursor
      if (cursor === undefined) break
    }
    throw new Fault("not_found", `there is no snapshot ${JSON.stringify(snapshot)} of this session`)
  }

  /** Throws unless so many more sessions may be made. */
  async checkRoom(more: number, context: Context, limits: Limits): Promise<void> {
    const { sessionsMax, namePrefix = "", prefixSessionsMax } = limits
    if (sessionsMax !== undefined) await this.#check(more, "", sessionsMax, context)
    if (prefixSessionsMax !== undefined) await this.#check(more, namePrefix, prefixSessionsMax, context)
  }

  /** What a token with a prefix is told. */
  shown(name: string, answer: unknown, { namePrefix }: Limits): unknown {
    if (namePrefix === undefined) return answer
    const isMine = (session: Named): boolean => session.name.startsWith(namePrefix)
    if (name === "session.list") {
      const { items, ...rest } = answer as { items: Named[] }
      return { ...rest, items: items.filter(isMine) }
    }
    if (name === "session.getOrCreate" && !isMine((answer as { session: Named }).session)) {
      throw new Fault("forbidden", "another session has this key")
    }
    return answer
  }

  async *follow(input: { after: number }, context: Context, { namePrefix = "" }: Limits): AsyncGenerator<Event> {
    const seen = new Set<string>()
    for await (const event of this.#plane["session.follow"](input, context)) {
      const { id, session } = event.item
      const isMine = session?.name.startsWith(namePrefix) ?? seen.has(id)
      if (!isMine) continue
      if (seen.size < seenMax) seen.add(id)
      yield event
    }
  }

  async #check(more: number, prefix: string, max: number, context: Context): Promise<void> {
    let count = more
    let cursor: string | undefined
    do {
      if (count > max) throw new Fault("limit", `${max} sessions are all that may be`, { hint: "delete one first" })
      const page = await this.#plane["session.list"]({ state: [...live], cursor, limit: pageSize }, context)
      count += page.items.filter(({ name }) => name.startsWith(prefix)).length
      cursor = page.nextCursor
    } while (cursor !== undefined)
    if (count > max) throw new Fault("limit", `${max} sessions are all that may be`, { hint: "delete one first" })
  }
}
