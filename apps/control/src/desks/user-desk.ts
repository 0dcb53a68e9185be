import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Context, Handlers } from "@warren/protocol/contract.ts"
import type { userCalls } from "@warren/protocol/control/users.ts"
import type { Store } from "../store/store.ts"
import type { UserRow } from "../store/users.ts"
import { visitOf } from "../visit.ts"
import type { Watch } from "../watch.ts"
import type { InviteDesk } from "./invite-desk.ts"
import { absent, done, shownUser } from "./shapes.ts"

interface UserParts {
  readonly store: Store
  readonly invites: InviteDesk
  readonly watch: Watch
  readonly clock: Clock
  readonly defaults: { readonly sessionsMax: number; readonly requestsPerMinute: number }
  readonly findRoute: (user: UserRow) => Promise<{ readonly socket: string; readonly uid: number } | undefined>
}

/** What admins do: users, their quotas and routes, and invites. */
export function userDesk(parts: UserParts): Handlers<typeof userCalls> {
  const { users } = parts.store
  const named = async (name: string, context: Context): Promise<UserRow> => {
    const user = await users.byName(name)
    if (!user) throw absent("user")
    visitOf(context).subject = user.id
    return user
  }
  return {
    "user.list": async ({ cursor = "", limit }) => {
      const found = await users.list(cursor, limit + 1)
      const items = found.slice(0, limit).map(shownUser)
      const last = items.at(-1)
      return { items, ...(found.length > limit && last ? { nextCursor: last.name } : {}) }
    },
    "user.create": async ({ name, role }, context) => {
      const user: UserRow = { id: newId("usr"), name, role, isDisabled: false, createdAt: parts.clock.now() }
      visitOf(context).subject = user.id
      await users.add(user).catch(unless("conflict", `there is a user "${name}" already`))
      return shownUser(user)
    },
    "user.update": async ({ name, role, isDisabled }, context) => {
      const user = await named(name, context)
      const changed = { role: role ?? user.role, isDisabled: isDisabled ?? user.isDisabled }
      await users.change(user.id, changed).catch(unless("conflict", lastAdmin))
      await parts.watch.look()
      return shownUser({ ...user, ...changed })
    },
    "user.delete": async ({ name }, context) => {
      const user = await named(name, context)
      await users.delete(user.id).catch(unless("conflict", lastAdmin))
      await parts.watch.look()
      return done
    },
    "route.get": async ({ name }, context) => {
      const route = await parts.findRoute(await named(name, context))
      if (!route) throw new Fault("not_found", `${name} has no runner on this machine`, { hint: "say where it is" })
      return route
    },
    "route.set": async ({ name, socket, uid }, context) => {
      await users.setRoute((await named(name, context)).id, { socket, uid })
      return { socket, uid }
    },
    "quota.get": async ({ name }, context) => ({
      ...parts.defaults,
      ...(await users.quotaOf((await named(name, context)).id)),
    }),
    "quota.set": async ({ name, sessionsMax, requestsPerMinute }, context) => {
      const user = await named(name, context)
      const quota = {
        ...(await users.quotaOf(user.id)),
        ...(sessionsMax === undefined ? {} : { sessionsMax }),
        ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
      }
      await users.setQuota(user.id, quota)
      return { ...parts.defaults, ...quota }
    },
    ...parts.invites.handlers(),
  }
}

const lastAdmin = "there would be no admin left who can sign in"

/** The database's refusal, in words for whoever asked. */
function unless(code: "conflict", message: string): (thrown: unknown) => never {
  return (cause) => {
    throw Fault.from(cause).code === code ? new Fault(code, message, { cause }) : cause
  }
}
