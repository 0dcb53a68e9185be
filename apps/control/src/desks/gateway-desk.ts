import type { Clock } from "@warren/base/clock.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { gatewayCalls } from "@warren/protocol/control/gateway.ts"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import type { UserPlane } from "@warren/protocol/user-plane.ts"
import type { SigningKey } from "../signing-key.ts"
import { visitOf } from "../visit.ts"

/** Tokens for a user's own gateway. The runner says whether the session is there for whoever asks. */
export function gatewayDesk(runner: UserPlane, key: SigningKey, clock: Clock): Handlers<typeof gatewayCalls> {
  return {
    "gateway.token": async ({ id, lifeS }, context) => {
      const session = await runner["session.get"]({ id }, context)
      const { user } = visitOf(context).who
      const now = clock.now()
      const token = signGatewayToken(key.privateKey, { user: user.name, session: session.id, lifeS, now })
      return { token, session: session.id, expiresAt: new Date((Math.floor(now / 1000) + lifeS) * 1000).toISOString() }
    },
  }
}
