import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import { Turns } from "@warren/base/turns.ts"
import { isFeed, type Context } from "@warren/protocol/contract.ts"
import type { Statement } from "@warren/protocol/statement.ts"
import { userPlane, type UserPlane } from "@warren/protocol/user-plane.ts"
import type { Admitted } from "./admission.ts"
import { SessionLimits } from "./session-limits.ts"

type Limits = NonNullable<Statement["limits"]>
type Input = Record<string, unknown>
type Handler = (input: unknown, context: Context) => unknown

/** Calls that leave more sessions than there were. */
const making = new Set(["session.create", "session.getOrCreate", "session.fork", "session.restore"])
/** Calls that name no session and tell of none that is not theirs. What is not here is refused to a token that sees only some. */
const apart = new Set([
  ...["health.check", "session.list", "session.create", "session.getOrCreate", "pool.list"],
  ...["image.list", "image.inspect", "image.pull", "image.import", "image.build", "image.make"],
  ...["image.tag", "image.delete", "image.gc", "db.query", "db.execute"],
  ...["workspace.create", "workspace.list", "workspace.get", "workspace.usage", "workspace.delete", "workspace.files"],
  ...["workspace.stat", "workspace.mkdir", "workspace.move", "workspace.remove", "workspace.read", "workspace.write"],
  ...["secrets.set", "secrets.list", "secrets.delete"],
  ...["memory.add", "memory.list", "memory.search", "memory.get", "memory.delete"],
])
/** Calls about a chat, which is some session's, or nobody's. */
const aboutChat = new Set(["chat.get", "chat.messages"])

/**
 * The user plane as tokens with limits may use it: only sessions whose names begin with their prefix are there, and no
 * more are made than they may have.
 */
export function limitedPlane(plane: UserPlane): UserPlane {
  const limits = new SessionLimits(plane)
  const turns = new Turns()
  const wrap = (name: string, handler: Handler): Handler => {
    return (input, context) => {
      const mine = (context.caller as Admitted).limits
      if (mine === undefined) return handler(input, context)
      if (name === "session.follow") return limits.follow(input as never, context, mine)
      const narrowed = () => narrow(name, input as Input, context, mine, limits)
      if (isFeed(userPlane[name as keyof UserPlane])) return followed(handler, narrowed, context)
      return turnsFor(name, turns, async () => {
        const within = await narrowed()
        if (making.has(name)) await limits.checkRoom(countOf(input as Input), context, mine)
        return limits.shown(name, await handler(within, context), mine)
      })
    }
  }
  const entries = Object.keys(userPlane).map((name) => [name, wrap(name, plane[name as keyof UserPlane] as Handler)])
  return Object.fromEntries(entries) as UserPlane
}

async function* followed(handler: Handler, input: () => Promise<Input>, context: Context): AsyncGenerator<unknown> {
  yield* handler(await input(), context) as AsyncIterable<unknown>
}

/** What makes sessions takes turns: two at once would both find room for one. */
function turnsFor<T>(name: string, turns: Turns, work: () => Promise<T>): Promise<T> {
  return making.has(name) ? turns.take("making", work) : work()
}

function countOf(input: Input): number {
  return typeof input["count"] === "number" ? input["count"] : 1
}

/** The input with sessions by their ids, so that what was checked is what is used; throws when one is not there for it. */
async function narrow(
  name: string,
  input: Input,
  context: Context,
  { namePrefix }: Limits,
  limits: SessionLimits,
): Promise<Input> {
  if (namePrefix === undefined) return input
  if (name === "session.create" || name === "session.getOrCreate") return named(unbased(input), namePrefix)
  if (aboutChat.has(name)) await limits.checkChat(String(input["id"]), context, namePrefix)
  const field = sessionFieldOf(name)
  const which = input[field]
  if (typeof which !== "string") {
    if (apart.has(name) || aboutChat.has(name)) return input
    throw new Fault("forbidden", "this token sees only some sessions: name one of them")
  }
  const session = await limits.find(which, context, namePrefix)
  const found = {
    ...input,
    [field]: session,
    ...(await second(name, input, (other) => limits.find(other, context, namePrefix))),
  }
  if (name === "session.rollback") await limits.checkSnapshot(session, String(input["snapshot"]), context)
  return name === "session.fork" || (name === "session.update" && input["name"] !== undefined)
    ? named(found, namePrefix)
    : found
}

/** A call that is about two has to be let in by both. */
async function second(name: string, input: Input, find: (which: string) => Promise<string>): Promise<Input> {
  return name === "session.compare" ? { other: await find(String(input["other"])) } : {}
}

function sessionFieldOf(name: string): string {
  if (name === "chat.list") return "sessionId"
  return name.startsWith("session.") ? "id" : "session"
}

/** A snapshot holds another session's files, and may be of one that this token does not see. */
function unbased(input: Input): Input {
  if (input["from"] === undefined) return input
  throw new Fault("forbidden", "this token sees only some sessions: it cannot start from a snapshot", {
    hint: "fork a session instead",
  })
}

function named(input: Input, prefix: string): Input {
  const { name } = input
  if (name === undefined) return { ...input, name: `${prefix}${newId("n").slice(2, 10)}` }
  if (typeof name === "string" && name.startsWith(prefix)) return input
  throw new Fault("forbidden", `this token makes only sessions whose names begin with "${prefix}"`)
}
