import { Fault } from "@warren/base/fault.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { accountCalls } from "@warren/protocol/control/account.ts"
import type { Clock } from "@warren/base/clock.ts"
import type { Cookies } from "../login/cookie.ts"
import { loginLimits, type Doorman } from "../login/doorman.ts"
import type { Passwords } from "../login/password.ts"
import type { Store } from "../store/store.ts"
import { visitOf, type Principal } from "../visit.ts"
import type { Watch } from "../watch.ts"
import { absent, done, shownSignIn, shownUser } from "./shapes.ts"

interface AccountParts {
  readonly store: Store
  readonly doorman: Doorman
  readonly passwords: Passwords
  readonly cookies: Cookies
  readonly watch: Watch
  readonly clock: Clock
  readonly hasOidc: boolean
}

/** Signing in and out, and one's own account. */
export function accountDesk(parts: AccountParts): Handlers<typeof accountCalls> {
  const { store, doorman, cookies, watch } = parts
  return {
    "login.methods": async (_, context) => {
      const { principal } = visitOf(context)
      const oidc = parts.hasOidc ? { oidc: "/v1/login/oidc" } : {}
      return { password: true, ...oidc, ...(principal ? { account: accountOf(principal) } : {}) }
    },
    "login.password": async ({ name, password }, context) => {
      const visit = visitOf(context)
      const user = await doorman.check(visit, name, password)
      await doorman.signIn(visit, user, "password")
      return { user: shownUser(user) }
    },
    "login.out": async (_, context) => {
      const visit = visitOf(context)
      if (visit.who.via === "sign-in") await store.signIns.revoke(visit.who.user.id, visit.who.viaId)
      visit.headers.push(cookies.clear("sign-in"))
      await watch.look()
      return done
    },
    "account.get": async (_, context) => accountOf(visitOf(context).who),
    "account.password": async (input, context) => setPassword(parts, input, visitOf(context)),
    "signin.list": async (_, context) => {
      const { user, viaId } = visitOf(context).who
      return { items: (await store.signIns.listOf(user.id)).map((row) => shownSignIn(row, viaId)) }
    },
    "signin.revoke": async ({ id }, context) => {
      if (!(await store.signIns.revoke(visitOf(context).who.user.id, id))) throw absent("sign-in")
      await watch.look()
      return done
    },
  }
}

function accountOf({ user, scopes, via }: Principal) {
  return { user: shownUser(user), scopes: [...scopes], via }
}

async function setPassword(
  { store, doorman, passwords, clock, watch }: AccountParts,
  input: { readonly current?: string | undefined; readonly password: string },
  visit: ReturnType<typeof visitOf>,
): Promise<typeof done> {
  const { user, viaId } = visit.who
  visit.subject = user.id
  const verifier = await store.users.passwordOf(user.id)
  if (verifier !== undefined) {
    doorman.slow(visit, `login ${user.name} ${visit.address}`, loginLimits.perAccount)
    if (!(await passwords.isRight(input.current ?? "", verifier))) {
      throw new Fault("forbidden", "the current password is wrong")
    }
  }
  await store.users.setPassword(user.id, await passwords.hash(input.password), clock.now())
  await store.signIns.revokeOthers(user.id, viaId)
  await watch.look()
  return done
}
