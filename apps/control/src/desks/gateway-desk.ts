import type { Clock } from "@warren/base/clock.ts"
import type { Handlers } from "@warren/protocol/contract.ts"
import type { gatewayCalls } from "@warren/protocol/control/gateway.ts"
import { signGatewayToken } from "@warren/protocol/gateway-token.ts"
import type { UserPlane } from "@warren/protocol/user-plane.ts"
import type { SigningKey } from "../signing-key.ts"
import { visitOf } from "../visit.ts"

/** Tokens for a user's own gateway. The runner says whether the session is there for whoever asks. */
export function gatewayDesk(
  runner: UserPlane,
  key: SigningKey,
  domain: string,
  clock: Clock,
): Handlers<typeof gatewayCalls> {
  return {
    "gateway.token": async ({ id, lifeS, port }, context) => {
      const session = await runner["session.get"]({ id }, context)
      const { user, viaId: via, scopes } = visitOf(context).who
      const tools = scopes.has("exec")
      const now = clock.now()
      const token = signGatewayToken(key.privateKey, {
        user: user.name,
        session: session.id,
        port,
        tools,
        via,
        lifeS,
        now,
      })
      const expiresAt = new Date((Math.floor(now / 1000) + lifeS) * 1000).toISOString()
      return { token, session: session.id, expiresAt, domain }
    },
  }
}
