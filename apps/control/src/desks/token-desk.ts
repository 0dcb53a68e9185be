import type { Clock } from "@warren/base/clock.ts"
import { Fault } from "@warren/base/fault.ts"
import { newId } from "@warren/base/id.ts"
import type { Handlers, Received } from "@warren/protocol/contract.ts"
import type { tokenCalls } from "@warren/protocol/control/tokens.ts"
import { boundScopes, defaultScopes, type TokenScope } from "@warren/protocol/token-scope.ts"
import { hashOf, newE2bSecret, newSecret } from "../secret.ts"
import type { Store } from "../store/store.ts"
import type { TokenRow } from "../store/tokens.ts"
import { visitOf, type Principal } from "../visit.ts"
import type { Watch } from "../watch.ts"
import { absent, done, shownToken } from "./shapes.ts"

const tokensMax = 200

/** Tokens for programs. */
export function tokenDesk(store: Store, watch: Watch, clock: Clock): Handlers<typeof tokenCalls> {
  return {
    "token.create": async (input, context) => {
      const visit = visitOf(context)
      const token = input.form === "e2b" ? newE2bSecret() : newSecret("wrn_")
      const row = rowOf(input, visit.who, hashOf(token), clock.now())
      if (!(await store.tokens.add(row, tokensMax))) {
        throw new Fault("limit", `${tokensMax} tokens are all one user may have`, { hint: "revoke one first" })
      }
      visit.subject = row.id
      return { token, about: shownToken(row) }
    },
    "token.list": async (_, context) => ({
      items: (await store.tokens.listOf(visitOf(context).who.user.id)).map(shownToken),
    }),
    "token.revoke": async ({ id }, context) => {
      if (!(await store.tokens.revoke(visitOf(context).who.user.id, id))) throw absent("token")
      await watch.look()
      return done
    },
  }
}

function rowOf(
  input: Received<typeof tokenCalls, "token.create">,
  who: Principal,
  hash: string,
  now: number,
): TokenRow {
  const { limits, lifeMs, label } = input
  // A token that sees only some sessions cannot make one that sees all.
  const namePrefix = narrower(limits.namePrefix, who.limits?.namePrefix)
  const unlessSaid = namePrefix === undefined ? defaultScopes : boundScopes
  const scopes = scopesFor(input.scopes, who, unlessSaid)
  return {
    ...{ id: newId("tok"), userId: who.user.id, hash, label, scopes: scopes.join(" "), namePrefix },
    sessionsMax: least(limits.sessionsMax, who.limits?.prefixSessionsMax),
    requestsPerMinute: least(limits.requestsPerMinute, who.requestsPerMinute.token),
    ...{ createdAt: now, expiresAt: lifeMs === undefined ? undefined : now + lifeMs, usedAt: undefined },
  }
}

/** Nobody hands out more than they have. */
function scopesFor(
  wanted: readonly TokenScope[] | undefined,
  { scopes }: Principal,
  unlessSaid: readonly TokenScope[],
): TokenScope[] {
  const missing = wanted?.find((scope) => !scopes.has(scope))
  if (missing !== undefined) throw new Fault("forbidden", `you do not have the scope ${missing} yourself`)
  return [...new Set(wanted ?? unlessSaid.filter((scope) => scopes.has(scope)))]
}

function narrower(wanted: string | undefined, own: string | undefined): string | undefined {
  if (own === undefined || wanted?.startsWith(own)) return wanted ?? own
  if (wanted === undefined) return own
  throw new Fault("forbidden", `the prefix has to begin with "${own}", as your own does`)
}

function least(wanted: number | undefined, own: number | undefined): number | undefined {
  if (wanted === undefined || own === undefined) return wanted ?? own
  return Math.min(wanted, own)
}
